"""Errors after which a GPU takes no more work from this process, told from those that pass."""

from __future__ import annotations

import torch

PASSING_CUDA_ERRORS = frozenset({1, 2, 98, 209, 701, *range(900, 911)})
"""cudaError_t after which the device can still be used: what was refused before it ran (an argument, a kernel that is
not there, too many resources), a full memory, captures."""
KERNEL_FAULTS = ("illegal memory access", "misaligned address", "illegal instruction", "launch failure", "assert")


class DeviceLostError(RuntimeError):
    """A kernel faulted, and the GPU takes no more work from this process. It belongs to no request."""

    def __init__(self, error: Exception, remedy: str = "restart it") -> None:
        """`remedy` ends the sentence: what to do about the process."""
        super().__init__(
            f"The GPU failed ({first_line(error)}), and nothing runs on it in this process any more: {remedy}."
        )


def is_device_lost(error: BaseException) -> bool:
    """Whether `error` leaves the GPU unusable for this process: a fault in a kernel, but no full memory or capture."""
    if isinstance(error, torch.AcceleratorError):
        return getattr(error, "error_code", None) not in PASSING_CUDA_ERRORS and "captur" not in str(error)
    return str(error).startswith("Triton Error [") and any(fault in str(error) for fault in KERNEL_FAULTS)


def first_line(error: Exception) -> str:
    """The first line of the error's message."""
    return (str(error).splitlines() or [""])[0]
