"""What "auto" means on each kind of machine, and which choices are refused."""

from __future__ import annotations

import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.config import ConfigError
from engine.model.device import resolve_dtype, resolve_kv_dtype
from engine.model.load_report import ModelLoadError

CPU, CUDA, OTHER = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


@pytest.fixture
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU of some capability, with or without bfloat16 products."""
    capability, bfloat16 = request.param
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bfloat16)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bfloat16)


NEW, OLD, ARM = ("AVX512", True), ("AVX2", False), ("DEFAULT", False)


@pytest.mark.parametrize(
    ("machine", "device", "four_bit_weights", "checkpoint", "chosen"),
    [
        (NEW, CPU, True, "float32", "int4"),
        (OLD, CPU, True, "float32", "int4"),
        (ARM, CPU, True, "float32", "float32"),
        (NEW, CPU, False, "bfloat16", "bfloat16"),
        (OLD, CPU, False, "bfloat16", "float32"),
        (NEW, CPU, False, "float32", "float32"),
        (NEW, CUDA, True, "float32", "bfloat16"),
        (OLD, CUDA, False, "bfloat16", "float32"),
        (NEW, OTHER, True, "float32", "float32"),
    ],
    indirect=["machine"],
)
@pytest.mark.usefixtures("machine")
def test_auto(device: torch.device, four_bit_weights: bool, checkpoint: str, chosen: str) -> None:
    assert resolve_dtype("auto", four_bit_weights=four_bit_weights, checkpoint=checkpoint, device=device) == chosen


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_a_requested_device_is_used(name: str) -> None:
    assert resolve_dtype(name, four_bit_weights=True, checkpoint="float32", device=CPU) == name


@pytest.mark.parametrize(
    ("name", "four_bit_weights", "device", "sentence"),
    [
        ("float8", True, CPU, r"float8 is not a data type \(dtype\) of this engine; choose one of auto, float32"),
        ("int4", False, CPU, "only smollm2-135m-instruct has them"),
        ("int4", True, CUDA, "int4 runs on the CPU only, and the model is on cuda"),
    ],
)
def test_refusals(name: str, four_bit_weights: bool, device: torch.device, sentence: str) -> None:
    with pytest.raises(ModelLoadError, match=sentence):
        resolve_dtype(name, four_bit_weights=four_bit_weights, checkpoint="float32", device=device)


def test_kv_dtype_is_the_model_s_and_bfloat16_beside_int4() -> None:
    assert resolve_kv_dtype("auto", "float32") is torch.float32
    assert resolve_kv_dtype("auto", "bfloat16") is torch.bfloat16
    assert resolve_kv_dtype("auto", "int4") is torch.bfloat16
    assert resolve_kv_dtype("float32", "int4") is torch.float32
    assert resolve_kv_dtype("bfloat16", "float32") is torch.bfloat16


def test_the_engine_sets_up_the_kv_dtype_that_was_asked_for() -> None:
    for asked, expected in (("auto", "float32"), ("bfloat16", "bfloat16")):
        engine = Engine(EngineConfig(model="tiny-random", num_blocks=8, dtype="float32", kv_dtype=asked))
        assert engine.trace.info["kv_dtype"] == expected
        assert str(engine.components.store.key_cache.dtype) == f"torch.{expected}"
        [output] = engine.generate(["abc"], SamplingParams(max_tokens=4, ignore_eos=True))
        assert len(output.outputs[0].token_ids) == 4
    with pytest.raises(ConfigError, match="kv_dtype must be one of auto, float32, bfloat16; it is 'int8'"):
        EngineConfig(kv_dtype="int8")
