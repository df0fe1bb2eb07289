"""Every Triton kernel compiles for GPUs that are not here, and keeps within their registers and shared memory.

The compilers run in processes of their own: this one has switched Triton to its interpreter.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.kernel_resources import SHARED_LIMIT, TARGETS

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    pytest.importorskip("triton", reason="Triton exists for Linux only")
    command = [sys.executable, "-m", "benchmarks.kernel_resources", "--json", "--head-dim", "64", "128"]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def attention_rows(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["kernel"] in ("prefill", "decode")]


def test_every_kernel_was_compiled_for_every_target(rows: list[Row]) -> None:
    kernels = {row["kernel"] for row in rows}
    assert kernels == {"prefill", "decode", "merge", "write_kv", "rotary_write_kv", "copy_blocks"}
    assert {(row["kernel"], row["target"]) for row in rows} == {(k, t) for k in kernels for t in TARGETS}
    assert {row["dtype"] for row in attention_rows(rows)} == {"bfloat16", "float16", "float32"}


def test_nothing_spills(rows: list[Row]) -> None:
    assert [row for row in rows if row["spilled_bytes"] or row["spilled_scalars"]] == []


def test_shared_memory_fits_the_chip(rows: list[Row]) -> None:
    assert [row for row in rows if row["shared_bytes"] > SHARED_LIMIT[row["target"]]] == []
    assert all(row["shared_bytes"] > 0 for row in attention_rows(rows))


def test_keys_and_values_are_read_sixteen_bytes_at_a_time(rows: list[Row]) -> None:
    assert [row for row in attention_rows(rows) if row["kv_load_bytes"] != [16]] == []


def test_prefill_and_grouped_decode_use_the_tensor_cores(rows: list[Row]) -> None:
    assert [row for row in attention_rows(rows) if row["tensor_core_instructions"] == 0] == []
