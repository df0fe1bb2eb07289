"""Which GPU `auto` takes, which it passes over and says so, and what a GPU has free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model import device as device_module
from engine.model.device import available_memory, device_note, resolve_device, unused_gpu
from kernels.device_lost import DeviceLostError, is_device_lost
from tests.helpers.hash_model import hash_engine
from tests.helpers.models import loaded

CONFIG = EngineConfig(model="tiny-random", block_size=4, num_blocks=16, attention_backend="reference")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine whose torch sees a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_80", "sm_90", "sm_100a", "compute_120"])
    return monkeypatch


def test_auto_is_a_gpu_that_torch_has_code_for(gpu: pytest.MonkeyPatch) -> None:
    assert resolve_device("auto").type == "cuda" and unused_gpu() == ""
    gpu.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 5))
    assert resolve_device("auto").type == "cuda"


def test_a_gpu_too_old_for_torch_is_skipped_with_a_reason(gpu: pytest.MonkeyPatch) -> None:
    """A V100: torch sees it, and the first operation fails with "no kernel image"."""
    gpu.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 0))
    assert resolve_device("auto").type == "cpu"
    with pytest.raises(ValueError, match=r"device 'cuda' was asked for, but torch has code for sm_75.* is sm_70; use"):
        resolve_device("cuda")
    assert unused_gpu() == (
        "The GPU of this machine is not used: torch has code for sm_75, sm_80, sm_90, sm_100a, compute_120, "
        "and this GPU is sm_70; install torch from https://download.pytorch.org/whl/cu126."
    )


@pytest.mark.parametrize(
    ("capability", "architectures", "device"),
    [
        ((8, 9), "sm_75 sm_80", "cuda"),
        ((12, 1), "sm_75 sm_120", "cuda"),
        ((10, 0), "sm_75 sm_100a", "cuda"),
        ((10, 3), "sm_75 sm_100a", "cpu"),
        ((13, 0), "sm_75 sm_120", "cpu"),
        ((13, 0), "sm_75 compute_120", "cuda"),
    ],
)
def test_a_gpu_newer_than_torch_runs_by_code_of_its_generation_or_by_ptx(
    gpu: pytest.MonkeyPatch, capability: tuple[int, int], architectures: str, device: str
) -> None:
    gpu.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    gpu.setattr(torch.cuda, "get_arch_list", architectures.split)
    assert resolve_device("auto").type == device
    assert ("install a newer torch" in unused_gpu()) == (device == "cpu")


def test_an_older_wheel_has_code_for_the_gpu_that_a_newer_one_has_not(gpu: pytest.MonkeyPatch) -> None:
    """What the sentence advises for a V100 must then run on it."""
    gpu.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 0))
    gpu.setattr(torch.cuda, "get_arch_list", lambda: ["sm_50", "sm_60", "sm_70", "sm_75", "sm_90"])
    assert resolve_device("auto").type == "cuda" and unused_gpu() == ""


def test_a_driver_whose_gpu_torch_does_not_see_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(device_module, "NVIDIA_DRIVER", tmp_path / "version")
    monkeypatch.setattr(device_module, "AMD_DRIVER", tmp_path / "kfd")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert unused_gpu() == ""
    (tmp_path / "version").touch()
    assert "needs driver 580 or later; update the driver, or install torch from" in unused_gpu()
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "this torch is built without CUDA" in unused_gpu()


def test_an_amd_gpu_under_a_torch_without_rocm_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(device_module, "NVIDIA_DRIVER", tmp_path / "version")
    monkeypatch.setattr(device_module, "AMD_DRIVER", tmp_path)
    assert "see requirements-rocm.txt" in unused_gpu()
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert unused_gpu() == ""


def test_a_gpu_without_bfloat16_is_reported_where_the_model_runs_in_float32(gpu: pytest.MonkeyPatch) -> None:
    for has_bfloat16, note in ((False, "This GPU does not support bfloat16."), (True, "")):
        gpu.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, has=has_bfloat16: has)
        assert device_note(torch.device("cuda"), "float32") == note
        assert device_note(torch.device("cuda"), "float16") == ""


def test_one_of_several_gpus_is_chosen_by_the_environment(gpu: pytest.MonkeyPatch) -> None:
    """Triton launches on the current device, whatever device the tensors are on."""
    assert resolve_device("cuda:0").type == "cuda"
    with pytest.raises(ValueError, match="use 'cuda', and start with CUDA_VISIBLE_DEVICES=1"):
        resolve_device("cuda:1")


@pytest.mark.usefixtures("gpu")
def test_an_engine_runs_where_the_model_it_was_given_is() -> None:
    """On a machine with a GPU, `auto` put the cache on the GPU beside a model on the CPU."""
    store = build_components(CONFIG, loaded("tiny-random")).store
    assert store is not None and store.key_cache.device.type == "cpu"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="device is 'cuda', but the given model is on cpu"):
        build_components(EngineConfig(model="tiny-random", device="cuda"), loaded("tiny-random"))


def test_what_torch_keeps_cached_on_a_gpu_counts_as_free(gpu: pytest.MonkeyPatch) -> None:
    """After a reset the old cache lies in torch's allocator, and the new one may take its place."""
    gpu.setattr(torch.cuda, "mem_get_info", lambda _device: (8_000, 16_000))
    gpu.setattr(torch.cuda, "memory_reserved", lambda _device: 3_000)
    gpu.setattr(torch.cuda, "memory_allocated", lambda _device: 1_000)
    assert available_memory(torch.device("cuda")) == 9_500, "a twentieth is kept back"


class Fails:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, _items: object) -> torch.Tensor:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        torch.AcceleratorError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might"),
        RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
    ],
)
def test_a_lost_gpu_stops_the_engine_with_advice_to_restart(error: Exception) -> None:
    """Every later call fails as well: no request is to blame, and none can go on."""
    config = EngineConfig(block_size=4, num_blocks=40)
    engine = Engine(config, replace(hash_engine(config).components, runner=Fails(error)))
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=4))
    with pytest.raises(DeviceLostError, match=r"illegal memory access was encountered\).*restart it\.$"):
        engine.step()


def test_out_of_memory_and_a_failed_capture_are_no_lost_gpu() -> None:
    assert not is_device_lost(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_device_lost(torch.AcceleratorError("CUDA error: operation not permitted when stream is capturing"))
    assert not is_device_lost(RuntimeError("Triton Error [CUDA]: out of memory"))
    coded = torch.AcceleratorError("CUDA error")
    for code in (2, 209, 701, 906):
        coded.error_code = code  # type: ignore[attr-defined]
        assert not is_device_lost(coded)
    coded.error_code = 700  # type: ignore[attr-defined]
    assert is_device_lost(coded)
