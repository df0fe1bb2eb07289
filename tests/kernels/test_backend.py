"""select_backend: the choice, its reason, and the sentence of a refusal."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels import backend, registry
from kernels.backend import select_backend
from kernels.device_lost import DeviceLostError
from kernels.self_test import AttentionSizes

CPU, GPU = torch.device("cpu"), torch.device("cuda")
_LOAD = backend._load


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make `package` look uninstalled."""
    find_spec = registry.find_spec  # type: ignore[attr-defined]
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == package else find_spec(name))


def test_reference_runs_anywhere() -> None:
    assert select_backend("reference", CPU).name == "reference"


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'cuda'; choose one of auto, triton, cpu, reference"):
        select_backend("cuda", CPU)


def test_auto_without_numba_is_reference_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "numba")
    chosen = select_backend("auto", CPU)
    assert chosen.name == "reference" and "numba package is not installed" in chosen.reason


def test_auto_on_a_gpu_without_triton_is_reference_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "triton")
    chosen = select_backend("auto", GPU)
    assert chosen.name == "reference" and "triton package is not installed" in chosen.reason


def test_triton_without_a_gpu_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ValueError, match="Triton needs a GPU") as refusal:
        select_backend("triton", CPU)
    assert "active drivers" not in str(refusal.value)


def test_cpu_kernels_are_refused_for_gpu_tensors() -> None:
    with pytest.raises(ValueError, match="its kernels read CPU memory"):
        select_backend("cpu", GPU)


def test_a_device_that_no_kernel_is_written_for_gets_the_reference() -> None:
    chosen = select_backend("auto", torch.device("mps"))
    assert (chosen.name, chosen.reason) == ("reference", "no other backend is written for this device")


def test_a_backend_is_added_by_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """It brings no operation of its own, so all of them are the reference's; "auto" takes the first that can run."""
    reference = registry.BACKENDS[-1]
    added = replace(reference, name="added", module="added", device_types=frozenset({"mps"}), reason="it is new")
    monkeypatch.setattr(backend, "BACKENDS", (added, *registry.BACKENDS))
    chosen = select_backend("auto", torch.device("mps"))
    assert (chosen.name, chosen.reason) == ("added", "it is new")
    assert chosen.paged_attention is select_backend("reference", CPU).paged_attention
    assert select_backend("auto", CPU).name == "cpu"


def test_auto_falls_back_to_the_next_backend_with_the_obstacle_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = replace(registry.BACKENDS[-1], name="broken", obstacle=lambda _device: "its library is not here")
    monkeypatch.setattr(backend, "BACKENDS", (broken, *registry.BACKENDS))
    chosen = select_backend("auto", torch.device("mps"))
    assert (chosen.name, chosen.reason) == ("reference", "plain PyTorch, because its library is not here")


@pytest.fixture
def no_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which Triton has compiled nothing yet, with a compiler and with Python's headers in this folder."""
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(registry, "find_spec", lambda _name: "there")
    monkeypatch.setattr(registry, "TRITON_CACHE", tmp_path / "cache")
    monkeypatch.setattr(registry, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(registry.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})  # type: ignore[attr-defined]
    return tmp_path


@pytest.mark.usefixtures("no_launcher")
def test_triton_without_a_compiler_is_not_chosen_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "which", lambda _name: None)
    chosen = select_backend("auto", GPU)
    assert chosen.name == "reference" and "Triton needs a C compiler" in chosen.reason


def test_triton_without_python_h_is_not_chosen_with_a_reason(no_launcher: Path) -> None:
    (no_launcher / "Python.h").unlink()
    chosen = select_backend("auto", GPU)
    assert chosen.name == "reference" and "Python.h" in chosen.reason


def test_a_launcher_that_was_compiled_before_needs_neither(no_launcher: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_launcher / "Python.h").unlink()
    monkeypatch.setattr(registry, "which", lambda _name: None)
    [triton] = [spec for spec in registry.BACKENDS if spec.name == "triton"]
    assert triton.obstacle(GPU)
    (no_launcher / "cache" / "abc").mkdir(parents=True)
    (no_launcher / "cache" / "abc" / "cuda_utils.cpython-311-x86_64-linux-gnu.so").touch()
    assert triton.obstacle(GPU) == ""


def chosen_after_self_test(
    monkeypatch: pytest.MonkeyPatch, sizes: AttentionSizes | None = None, **broken: Callable[..., object]
) -> backend.Backend:
    """What "auto" chooses where the first backend is tested before, and these of its operations are broken."""
    reference = registry.BACKENDS[-1]
    spec = replace(reference, name="tested", self_test_on="cpu", reason="it passed")
    load = _LOAD

    def loaded(asked: registry.BackendSpec, reason: str) -> backend.Backend:
        return replace(load(asked, reason), **(broken if asked is spec else {}))  # type: ignore[arg-type]

    monkeypatch.setattr(backend, "_load", loaded)
    backend._failed_self_test.cache_clear()
    monkeypatch.setattr(backend, "BACKENDS", (spec, reference))
    return select_backend("auto", CPU, sizes)


def test_a_backend_that_passes_its_self_test_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = chosen_after_self_test(monkeypatch)
    assert (chosen.name, chosen.reason) == ("tested", "it passed")


def test_kernels_that_give_wrong_results_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_key_less(query: Tensor, *cache: Tensor, scale: float, max_query_len: int) -> object:
        keys, values, table, seq_lens, starts = cache
        right = select_backend("reference", CPU).paged_attention
        return right(query, keys, values, table, seq_lens, starts, scale=scale, sliding_window=6)

    chosen = chosen_after_self_test(monkeypatch, paged_attention=one_key_less, copy_blocks=lambda _caches, _pairs: None)
    assert chosen.name == "reference"
    assert chosen.reason == (
        "plain PyTorch, because the tested kernels gave wrong results here "
        "(paged_attention at prefill, paged_attention at decode, copy_blocks)"
    )


def test_kernels_are_tested_with_the_sizes_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A T4 launches prefill at head_dim 64 and not at 128 in float16: the sizes decide."""
    right = select_backend("reference", CPU).paged_attention
    seen = []

    def noted(query: Tensor, keys: Tensor, *others: Tensor, **options: Any) -> object:
        seen.append((query.shape[1:], keys.shape[1:], query.dtype, keys.dtype))
        return right(query, keys, *others, **options)

    sizes = AttentionSizes(9, 3, 128, 16, torch.float16, torch.bfloat16)
    chosen = chosen_after_self_test(monkeypatch, sizes, paged_attention=noted)
    assert chosen.name == "tested"
    assert seen == [((9, 128), (16, 3, 128), torch.float16, torch.bfloat16)] * 2, "a prefill and a decode"


@pytest.mark.parametrize("block_size", [1, 3, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_the_self_test_detects_one_missing_key_at_any_size(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, block_size: int
) -> None:
    right = select_backend("reference", CPU).paged_attention

    def one_key_less(query: Tensor, *cache: Tensor, scale: float, max_query_len: int) -> object:
        keys, values, table, seq_lens, starts = cache
        return right(query, keys, values, table, seq_lens - 1, starts, scale=scale)

    sizes = AttentionSizes(4, 2, 16, block_size, dtype, dtype)
    assert chosen_after_self_test(monkeypatch, sizes).name == "tested"
    assert chosen_after_self_test(monkeypatch, sizes, paged_attention=one_key_less).name == "reference"


def test_kernels_that_lose_the_gpu_in_their_self_test_name_the_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even plain PyTorch runs on that GPU afterwards, so there is nothing to fall back to."""

    def fault(*_arguments: object, **_options: object) -> None:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors")

    sentence = r"illegal memory access was encountered\).*restart it with attention_backend 'reference'"
    with pytest.raises(DeviceLostError, match=sentence):
        chosen_after_self_test(monkeypatch, paged_attention=fault)


def test_kernels_that_cannot_be_launched_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("OutOfResources: shared memory\nRequired: 81920")

    chosen = chosen_after_self_test(monkeypatch, paged_attention=fail)
    assert chosen.name == "reference"
    assert chosen.reason == (
        "plain PyTorch, because the first run of the tested kernels failed "
        "(RuntimeError: OutOfResources: shared memory)"
    )
