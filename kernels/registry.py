"""The attention backends: one record for each. Their names, abilities and files are written nowhere else.

To add a backend, add a record to BACKENDS and a module called `module` to the folder of each operation it brings; the
operations it does not bring are those of `reference.py`. Imports neither torch, Triton nor Numba.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from kernels.paged_attention.outline import (
    AttentionOutline,
    cpu_outline,
    reference_outline,
    triton_outline,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor


TRITON_CACHE = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")


@dataclass(frozen=True)
class BackendSpec:
    """One backend, before anything of it is imported."""

    name: str
    module: str
    """Of its implementation in the folder of an operation: `kernels.<operation>.<module>`."""
    device_types: frozenset[str] | None
    """Where "auto" may choose it, or None for every device."""
    reason: str
    """One plain sentence: why "auto" chooses it there."""
    obstacle: Callable[[torch.device], str]
    """What keeps it from running for tensors on a device, as half a sentence; empty when nothing does."""
    attention_outline: Callable[[Tensor, int], AttentionOutline]
    """What its attention kernel does with one query token, for `key_cache` and num_heads (inspect/kernels_eye.py)."""
    cuda_graphs: bool = False
    """Whether its operations never wait for a GPU, so that a decode step can be recorded."""
    compiled_layers: bool = False
    """Whether kernels/decoder_layers computes what its operations do, in one call."""
    splits_by_batch: bool = False
    """Whether attention splits a sequence's keys by the size of the batch, so that its bits depend on batch mates."""
    takes_batch_invariant: bool = False
    """Whether `paged_attention` takes `batch_invariant=True`: one way of adding for all tokens, prompts or not."""
    self_test_on: str = ""
    """The device type on which its kernels are compared with the reference's before "auto" takes it; "" for none."""
    compiled_by_numba: bool = False
    """Whether Numba compiles what is in its files: see kernels/numba_cache.py."""

    def runs_on(self, device_type: str) -> bool:
        """Whether it is written for devices of this type, whatever is installed."""
        return self.device_types is None or device_type in self.device_types


def _no_obstacle(_device: torch.device) -> str:
    return ""


def _cpu_obstacle(device: torch.device) -> str:
    if device.type != "cpu":
        return f"its kernels read CPU memory, and the model is on {device.type}"
    if find_spec("numba") is None:
        return "the numba package is not installed"
    return ""


def _triton_obstacle(device: torch.device) -> str:
    if find_spec("triton") is None:
        return "the triton package is not installed (it exists for Linux only)"
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return "the model is on the CPU, and Triton needs a GPU (or TRITON_INTERPRET=1 set before the start)"
    if device.type not in ("cpu", "cuda"):
        return f"Triton kernels are written for NVIDIA and AMD GPUs, and the model is on {device.type}"
    return _launcher_obstacle() if device.type == "cuda" else ""


def _launcher_obstacle() -> str:
    """What Triton lacks to compile its own launcher, a C extension, at the first launch; empty when that is there."""
    if any(TRITON_CACHE.glob("*/*_utils*.so")):
        return ""
    if not any(map(which, filter(None, (os.environ.get("CC"), "gcc", "clang")))):
        return "Triton needs a C compiler for its launcher, and there is neither gcc nor clang (nor CC)"
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        return "Triton needs Python.h for its launcher: install Python's headers (python3-dev)"
    return ""


BACKENDS = (
    BackendSpec(
        name="triton",
        module="triton_kernel",
        device_types=frozenset({"cuda"}),
        reason="the model runs on a GPU, and Triton is installed",
        obstacle=_triton_obstacle,
        attention_outline=triton_outline,
        cuda_graphs=True,
        splits_by_batch=True,
        self_test_on="cuda",
    ),
    BackendSpec(
        name="cpu",
        module="cpu",
        device_types=frozenset({"cpu"}),
        reason="the model runs on the CPU, and Numba follows the block table there without a copy",
        obstacle=_cpu_obstacle,
        attention_outline=cpu_outline,
        compiled_layers=True,
        takes_batch_invariant=True,
        compiled_by_numba=True,
    ),
    BackendSpec(
        name="reference",
        module="reference",
        device_types=None,
        reason="no other backend is written for this device",
        obstacle=_no_obstacle,
        attention_outline=reference_outline,
    ),
)
"""In the order in which "auto" tries them; the last one runs everywhere."""

BACKEND_NAMES = ("auto", *(spec.name for spec in BACKENDS))
"""What `EngineConfig.attention_backend` takes."""


def is_split_by_batch(name: str) -> bool:
    """Whether `name`, one of BACKEND_NAMES, is a backend whose attention `splits_by_batch`."""
    return any(spec.splits_by_batch for spec in BACKENDS if spec.name == name)
