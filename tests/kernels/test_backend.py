"""select_backend: the choice, its reason, and the sentence of a refusal."""

import pytest
import torch

import kernels.backend as backend_module
from kernels.backend import select_backend

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make `package` look uninstalled."""
    find_spec = backend_module.find_spec
    monkeypatch.setattr(backend_module, "find_spec", lambda name: None if name == package else find_spec(name))


def test_reference_runs_anywhere() -> None:
    assert select_backend("reference", CPU).name == "reference"


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'cuda'; choose one of auto, triton, cpu, reference"):
        select_backend("cuda", CPU)


def test_auto_without_numba_is_reference_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "numba")
    chosen = select_backend("auto", CPU)
    assert chosen.name == "reference" and "numba package is not installed" in chosen.reason


def test_auto_on_a_gpu_without_triton_is_reference_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "triton")
    chosen = select_backend("auto", GPU)
    assert chosen.name == "reference" and "triton package is not installed" in chosen.reason


def test_triton_without_a_gpu_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ValueError, match="Triton needs a GPU") as refusal:
        select_backend("triton", CPU)
    assert "active drivers" not in str(refusal.value)


def test_cpu_kernels_are_refused_for_gpu_tensors() -> None:
    with pytest.raises(ValueError, match="its kernels read CPU memory"):
        select_backend("cpu", GPU)
