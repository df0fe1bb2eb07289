"""The operations of the backend that runs on this machine, and one plain sentence on why that one.

The choice is made from what is installed and which device is used, before any Triton or Numba module is imported:
importing a kernel module is the last step, taken only for the backend that was chosen.
"""

import logging
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from kernels.device_lost import DeviceLostError, first_line, is_device_lost
from kernels.interface import (
    AddRmsNorm,
    ArgmaxLogsumexp,
    CopyBlocks,
    PagedAttention,
    RmsNorm,
    RotaryWriteKv,
    SiluMul,
    SwapBlocks,
)
from kernels.registry import BACKEND_NAMES, BACKENDS, BackendSpec
from kernels.self_test import AttentionSizes, wrong_operations

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backend:
    """The operations of one backend, ready to call. kernels/interface.py says what each takes and gives."""

    spec: BackendSpec
    reason: str
    """One plain sentence: why this backend runs."""
    rotary_write_kv: RotaryWriteKv
    paged_attention: PagedAttention
    copy_blocks: CopyBlocks
    swap_blocks: SwapBlocks
    rms_norm: RmsNorm
    add_rms_norm: AddRmsNorm
    silu_mul: SiluMul
    argmax_logsumexp: ArgmaxLogsumexp

    @property
    def name(self) -> str:
        """The name of the backend's record in kernels/registry.py."""
        return self.spec.name


def check_backend(requested: str, device: torch.device) -> None:
    """Raises ValueError, with a sentence that says what is missing, when the requested backend cannot run here."""
    if requested not in BACKEND_NAMES:
        raise ValueError(f"unknown attention backend {requested!r}; choose one of {', '.join(BACKEND_NAMES)}")
    for spec in BACKENDS:
        if spec.name == requested and (obstacle := spec.obstacle(device)):
            raise ValueError(f"the {requested} attention backend cannot run here: {obstacle}")


def select_backend(requested: str, device: torch.device, sizes: AttentionSizes | None = None) -> Backend:
    """The backend `requested` (one of BACKEND_NAMES) for tensors on `device`.

    sizes: the model's, with which "auto" tests kernels before it takes them.
    Raises ValueError, with a sentence that says what is missing, when the requested backend cannot run here;
    DeviceLostError when kernels faulted in their test, after which nothing runs on that GPU.
    """
    check_backend(requested, device)
    if requested == "auto":
        return _load(*_choose(device, sizes or AttentionSizes()))
    [spec] = [spec for spec in BACKENDS if spec.name == requested]
    return _load(spec, f"it was asked for by name, for tensors on {device.type}")


def _choose(device: torch.device, sizes: AttentionSizes) -> tuple[BackendSpec, str]:
    """The first backend for such a device without an obstacle, and why: the obstacle of the one before it, if any."""
    obstacle = ""
    for spec in BACKENDS:
        if spec.runs_on(device.type):
            reason = f"plain PyTorch, because {obstacle}" if obstacle else spec.reason
            obstacle = spec.obstacle(device) or _failed_self_test(spec, device, sizes)
            if not obstacle:
                return spec, reason
    raise AssertionError("the last backend runs everywhere")


@cache
def _failed_self_test(spec: BackendSpec, device: torch.device, sizes: AttentionSizes) -> str:
    """What its kernels did wrong on `device`, as half a sentence; empty when nothing, or when no test is due."""
    if spec.self_test_on != device.type:
        return ""
    try:
        wrong = wrong_operations(_load(spec, ""), _load(BACKENDS[-1], ""), device, sizes)
    except Exception as error:
        if is_device_lost(error):
            remedy = f"restart it with attention_backend 'reference', because kernels of {spec.name} did that"
            raise DeviceLostError(error, remedy) from error
        _log.exception("the %s backend does not run on %s", spec.name, device)
        return f"the first run of the {spec.name} kernels failed ({type(error).__name__}: {first_line(error)})"
    return f"the {spec.name} kernels gave wrong results here ({', '.join(wrong)})" if wrong else ""


def _load(spec: BackendSpec, reason: str) -> Backend:
    def implementation(operation: str) -> Any:
        """This backend's, or plain PyTorch where that is already as good as a kernel of our own."""
        module = f"kernels.{operation}.{spec.module}"
        if find_spec(module) is None:
            module = f"kernels.{operation}.reference"
        return getattr(import_module(module), operation)

    operations = [field.name for field in fields(Backend) if field.name not in ("spec", "reason")]
    return Backend(spec=spec, reason=reason, **{name: implementation(name) for name in operations})
