"""Which twins of the operations run on this machine, and one plain sentence on why.

The choice is made from what is installed and which device is used, before any Triton or Numba module is
imported: importing a kernel module is the last step, taken only for the backend that was chosen.
"""

import os
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from kernels.best_token.reference import best_token
from kernels.interface import (
    BestToken,
    CopyBlocks,
    PagedAttention,
    RmsNorm,
    RotaryWriteKv,
    SiluMul,
    SwapBlocks,
    WriteKv,
)
from kernels.rms_norm.reference import rms_norm
from kernels.rotary_write_kv.reference import rotary_write_kv
from kernels.silu_mul.reference import silu_mul

BACKENDS = ("auto", "triton", "cpu", "reference")


@dataclass(frozen=True)
class Backend:
    """The operations of one backend, ready to call."""

    name: str
    """"triton", "cpu" or "reference"."""
    reason: str
    """One plain sentence: why this backend runs."""
    write_kv: WriteKv
    paged_attention: PagedAttention
    copy_blocks: CopyBlocks
    swap_blocks: SwapBlocks
    # Offered where fusing pays; plain PyTorch unless a backend brings its own.
    rotary_write_kv: RotaryWriteKv = rotary_write_kv
    rms_norm: RmsNorm = rms_norm
    silu_mul: SiluMul = silu_mul
    best_token: BestToken = best_token


def select_backend(requested: str, device: torch.device) -> Backend:
    """The backend `requested` ("auto", "triton", "cpu" or "reference") for tensors on `device`.

    Raises ValueError, with a sentence that says what is missing, when the requested backend cannot run here.
    """
    if requested not in BACKENDS:
        raise ValueError(f"unknown attention backend {requested!r}; choose one of {', '.join(BACKENDS)}")
    if requested == "auto":
        return _load(*_choose(device))
    obstacle = _obstacle(requested, device)
    if obstacle:
        raise ValueError(f"the {requested} attention backend cannot run here: {obstacle}")
    return _load(requested, f"it was asked for by name, for tensors on {device.type}")


def _choose(device: torch.device) -> tuple[str, str]:
    """The fastest backend without an obstacle, and why."""
    if device.type == "cpu":
        obstacle = _obstacle("cpu", device)
        if obstacle:
            return "reference", f"plain PyTorch, because {obstacle}"
        return "cpu", "the model runs on the CPU, and Numba follows the block table there without a copy"
    obstacle = _obstacle("triton", device)
    if obstacle:
        return "reference", f"plain PyTorch, because {obstacle}"
    return "triton", "the model runs on a GPU, and Triton is installed"


def _obstacle(name: str, device: torch.device) -> str:
    """What keeps backend `name` from running on `device`; empty when nothing does."""
    if name == "cpu":
        return _cpu_obstacle(device)
    if name == "triton":
        return _triton_obstacle(device)
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
    return ""


_TWIN_MODULE = {"reference": "reference", "cpu": "cpu", "triton": "triton_kernel"}


def _load(name: str, reason: str) -> Backend:
    def twin(operation: str) -> Any:
        """This backend's twin, or the plain PyTorch where that is already as good as a kernel of our own."""
        module = f"kernels.{operation}.{_TWIN_MODULE[name]}"
        if find_spec(module) is None:
            module = f"kernels.{operation}.reference"
        return getattr(import_module(module), operation)

    operations = {field.name: twin(field.name) for field in fields(Backend) if field.name not in ("name", "reason")}
    return Backend(name=name, reason=reason, **operations)
