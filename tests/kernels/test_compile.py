"""Every Triton kernel compiles for GPUs that are not here, and keeps within their registers and shared memory.

The compilers run in processes of their own: this one has switched Triton to its interpreter.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from benchmarks.chips import CHIP, CHIPS
from kernels.paged_attention.triton_config import architecture_of

Row = dict[str, Any]
QUICK = ("cuda90",)
OTHERS = tuple(chip.name for chip in CHIPS if chip.name not in QUICK)


@pytest.fixture(scope="module", params=[QUICK, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["cuda90", "others"])
def chips(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(scope="module")
def rows(chips: tuple[str, ...]) -> list[Row]:
    pytest.importorskip("triton", reason="Triton exists for Linux only")
    command = [sys.executable, "-m", "benchmarks.kernel_resources", "--json", "--chip", *chips]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    sizes = ["--head-dim", "64", "128"] if chips == QUICK else []
    done = subprocess.run([*command, *sizes], env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def attention_rows(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["kernel"] in ("prefill", "decode")]


def test_every_kernel_was_compiled_for_every_chip(rows: list[Row], chips: tuple[str, ...]) -> None:
    kernels = {row["kernel"] for row in rows}
    small = {"merge", "rotary_write_kv", "copy_blocks", "add_rms_norm", "silu_mul", "argmax_logsumexp"}
    assert kernels == {"prefill", "decode"} | small
    assert {(row["kernel"], row["chip"]) for row in rows} == {(kernel, chip) for kernel in kernels for chip in chips}
    for chip in chips:
        dtypes = {row["dtype"] for row in attention_rows(rows) if row["chip"] == chip}
        assert dtypes == {"float16", "float32"} | ({"bfloat16"} if CHIP[chip].has_bfloat16 else set())


def test_no_kernel_spills_registers_except_listed_ones(rows: list[Row]) -> None:
    spilling = [row for row in rows if row["spilled_bytes"] or row["spilled_scalars"]]
    assert [row for row in spilling if row["dtype"] != "float32" and row["head_dim"] in (64, 128)] == []
    assert [row for row in spilling if not row["why it spills"]] == []


def test_registers_and_shared_memory_fit_the_chip(rows: list[Row]) -> None:
    assert [row for row in rows if row["registers"] > CHIP[row["chip"]].max_registers] == []
    assert [row for row in rows if row["registers"] * row["threads"] > CHIP[row["chip"]].max_program_registers] == []
    assert [row for row in rows if row["shared_bytes"] > CHIP[row["chip"]].max_shared_bytes] == []
    assert all(row["registers"] > 0 for row in rows) and all(row["shared_bytes"] > 0 for row in attention_rows(rows))


def test_keys_and_values_are_read_sixteen_bytes_at_a_time(rows: list[Row]) -> None:
    assert [row for row in attention_rows(rows) if row["kv_load_bytes"] != [16]] == []


def test_attention_uses_the_tensor_cores_where_triton_has_them(rows: list[Row], chips: tuple[str, ...]) -> None:
    halves = [row for row in attention_rows(rows) if row["dtype"] != "float32"]
    without = {row["chip"] for row in halves if row["tensor_core_instructions"] == 0}
    assert without == {chip for chip in chips if CHIP[chip].without_tensor_cores}


@pytest.mark.parametrize(
    ("capability", "tables"),
    [((7, 5), "cuda75"), ((8, 6), "cuda80"), ((9, 0), "cuda90"), ((10, 3), "cuda100"), ((12, 0), "cuda120")],
)
def test_a_card_is_given_the_tiles_of_its_chip(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], tables: str
) -> None:
    """Ampere's prefill tiles of float16 at head_dim 128 take 80 KiB of Turing's 64 KiB of shared memory."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    monkeypatch.setattr(torch.version, "hip", None)
    assert architecture_of.__wrapped__(torch.device("cuda")) == tables


@pytest.mark.parametrize(
    ("name", "tables"), [("gfx942:sramecc+:xnack-", "gfx942"), ("gfx90a", "gfx942"), ("gfx1100", "rdna")]
)
def test_an_amd_card_is_given_the_tiles_of_its_chip(monkeypatch: pytest.MonkeyPatch, name: str, tables: str) -> None:
    class Properties:
        gcnArchName = name  # noqa: N815

    monkeypatch.setattr(torch.version, "hip", "7.2")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: Properties)
    assert architecture_of.__wrapped__(torch.device("cuda")) == tables
