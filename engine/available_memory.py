"""How much memory a device still has, asked before a large allocation rather than learnt from its failure."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

import torch

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available_memory(device: torch.device) -> int | None:
    """Bytes that could be allocated on `device` now, or None where this system does not say."""
    if device.type == "cuda":
        free, _total = torch.cuda.mem_get_info(device)
        return int(free)
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
