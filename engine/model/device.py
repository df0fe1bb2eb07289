"""Where a model runs and in which number type: device, memory left on it, what `auto` means, and the way there."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

import torch
from torch import Tensor

from engine.i18n import _
from engine.model.load_report import ModelLoadError

TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DTYPES = ("auto", *TORCH_DTYPES, "int4")
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
AMD_DRIVER = Path("/dev/kfd")
OLDER_WHEEL = "install torch from https://download.pytorch.org/whl/cu126"
"""Built for older drivers and with code for GPUs before Turing (7.5)."""
GRAPHS_SHARE = 0.05
"""Of a GPU's free memory, kept back for CUDA graphs and libraries."""


def resolve_device(name: str) -> torch.device:
    """`auto` is the GPU where torch sees one and has code for it. Raises ValueError for a device that cannot run."""
    if name == "auto":
        return torch.device("cpu" if _gpu_obstacle() else "cuda")
    device = torch.device(name)
    if device.type == "cuda" and (obstacle := _gpu_obstacle()):
        raise ValueError(
            _("device 'cuda' was asked for, but {obstacle}; use 'auto' or 'cpu'.").format(obstacle=obstacle)
        )
    if device.type == "cuda" and device.index:
        raise ValueError(
            _(
                "device '{name}' names one of several GPUs, and kernels run on the first one that "
                "torch sees: use 'cuda', and start with CUDA_VISIBLE_DEVICES={index}."
            ).format(name=name, index=device.index)
        )
    return device


def device_note(device: torch.device, dtype: str) -> str:
    """What `auto` passed over on this machine and why, in a sentence; empty where it took the best there is.

    `device`, `dtype`: where the model runs, and in which number type.
    """
    if device.type == "cpu":
        return unused_gpu()
    if device.type == "cuda" and dtype == "float32" and not _multiplies_bfloat16(device):
        return _("This GPU does not support bfloat16.")
    return ""


def unused_gpu() -> str:
    """A sentence on a GPU that is here but cannot be used, and what would change that; empty where there is none."""
    if torch.cuda.is_available():
        is_old = torch.cuda.get_device_capability() < (7, 5)
        remedy = OLDER_WHEEL if is_old else "install a newer torch"
        return (
            _("The GPU of this machine is not used: {obstacle}; {remedy}.").format(obstacle=obstacle, remedy=remedy)
            if (obstacle := _gpu_obstacle())
            else ""
        )
    if NVIDIA_DRIVER.exists() and torch.version.cuda is None:
        return _("This machine has an NVIDIA driver, but this torch is built without CUDA: install torch from PyPI.")
    if NVIDIA_DRIVER.exists():
        return _(
            "This machine has an NVIDIA driver, but torch sees no GPU: a build for CUDA 13 needs driver 580 or "
            "later; update the driver, or {older_wheel}."
        ).format(older_wheel=OLDER_WHEEL)
    if AMD_DRIVER.exists() and torch.version.hip is None:
        return _("This machine has an AMD GPU, but this torch is built without ROCm: see requirements-rocm.txt.")
    return ""


def _gpu_obstacle() -> str:
    """Why torch cannot compute on the GPU, as half a sentence; empty when it can."""
    if not torch.cuda.is_available():
        return "torch sees no GPU here"
    if torch.version.hip:
        return ""
    major, minor = torch.cuda.get_device_capability()
    if _has_code_for(10 * major + minor):
        return ""
    return f"torch has code for {', '.join(torch.cuda.get_arch_list())}, and this GPU is sm_{major}{minor}"


def _has_code_for(capability: int) -> bool:
    """Whether this torch has code for ten times a compute capability: machine code of the same major number that is no
    newer, or PTX, which is compiled for any later one.
    """
    for name in torch.cuda.get_arch_list():
        kind, _, number = name.partition("_")
        compiled_for = int(number.rstrip("af"))
        is_usable = kind == "compute" or (compiled_for // 10 == capability // 10 and not number.endswith("a"))
        if compiled_for == capability or (compiled_for < capability and is_usable):
            return True
    return False


def keep_sums_in_float32() -> None:
    """Let no product of narrow numbers on a GPU round its partial sums, as torch does by default."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor, of any shape, on `device`. To a GPU by pinned memory and without waiting for the copy."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def resolve_dtype(requested: str, *, four_bit_weights: bool, checkpoint: str, device: torch.device) -> str:
    """The name of the number type to run in.

    `auto` is, in this order: the weights' own four bits where the CPU has a kernel for them; else bfloat16 where
    the device multiplies it natively and the checkpoint is no more exact; else float32.
    Raises ModelLoadError for a name that does not exist or cannot run here.
    """
    if requested not in DTYPES:
        raise ModelLoadError(
            _("{requested} is not a data type (dtype) of this engine; choose one of {names}.").format(
                requested=requested, names=", ".join(DTYPES)
            )
        )
    if requested == "int4":
        _refuse_impossible_int4(four_bit_weights, device)
    if requested != "auto":
        return requested
    if four_bit_weights and has_int4_kernel(device):
        return "int4"
    if (four_bit_weights or checkpoint != "float32") and _multiplies_bfloat16(device):
        return "bfloat16"
    return "float32"


def resolve_kv_dtype(requested: str, model_dtype: str) -> torch.dtype:
    """The number type of keys and values. `auto`: the model's own, and bfloat16 beside weights of four bits."""
    if requested != "auto":
        return TORCH_DTYPES[requested]
    return torch.bfloat16 if model_dtype == "int4" else TORCH_DTYPES[model_dtype]


def has_int4_kernel(device: torch.device) -> bool:
    """torch's four-bit product for CPUs is written for AVX2 and AVX-512; elsewhere it runs a slow fallback."""
    if device.type != "cpu":
        return False
    capability: str = torch.backends.cpu.get_cpu_capability()
    return capability in ("AVX2", "AVX512")


def _multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())


def _refuse_impossible_int4(four_bit_weights: bool, device: torch.device) -> None:
    if not four_bit_weights:
        raise ModelLoadError(_("int4 needs weights that are stored in four bits; only smollm2-135m-instruct has them."))
    if device.type != "cpu":
        raise ModelLoadError(
            _("int4 runs on the CPU only, and the model is on {type}; choose bfloat16 there.").format(type=device.type)
        )


def available_memory(device: torch.device) -> int | None:
    """Bytes that could be allocated on `device` now, or None where this system does not say."""
    if device.type == "cuda":
        free, _total = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int((free + cached) * (1 - GRAPHS_SHARE))
    if device.type != "cpu":
        return None
    if platform.system() == "Linux":
        return _linux()
    if platform.system() == "Windows":
        return _windows()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _linux() -> int:
    """The machine's available memory, or a container's remaining share where that is less."""
    fields = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
    machine = int(fields["MemAvailable"].split()[0]) * 1024
    share = _container_share()
    return machine if share is None else min(machine, share)


def _container_share() -> int | None:
    """Control groups version 2: limit less use; None without a limit."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)


def _windows() -> int:
    """GlobalMemoryStatusEx: a structure of two 32-bit fields, then 64-bit ones; available memory is the second."""
    status = (ctypes.c_ulonglong * 8)()
    status[0] = ctypes.sizeof(status)
    ctypes.CDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status[2])
