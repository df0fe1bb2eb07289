"""rms_norm for the CPU, in Numba (interface: kernels.interface.RmsNorm): two passes over a row, one call in all."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_intrinsics import cached_flat_view, compiled, flat_view, narrow, widen
from kernels.threads import parallel_loops

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

SERIAL_ELEMENTS = 32_768
"""Numbers that one thread has normalised before the others are awake."""


def rms_norm(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    """See kernels.interface.RmsNorm."""
    out = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    with parallel_loops():
        rms_norm_rows(flat_view(hidden.contiguous()), cached_flat_view(weight), np.float32(eps), flat_view(out))
    return out


@compiled(parallel=True)
def rms_norm_rows(hidden, weight, eps, out):
    """hidden, out [num_tokens * size]; weight [size]."""
    rows = len(hidden) // len(weight)
    if len(hidden) <= SERIAL_ELEMENTS:
        for row in range(rows):
            rms_norm_row(hidden, weight, eps, out, row)
    else:
        for row in prange(rows):
            rms_norm_row(hidden, weight, eps, out, row)


@compiled()
def rms_norm_row(hidden, weight, eps, out, row):
    """One row of rms_norm: `hidden`, `out` [num_tokens * size] flat, `weight` [size]."""
    size = np.uintp(len(weight))
    start = np.uintp(row) * size
    squares = np.float32(0.0)
    for i in range(size):
        squares += widen(hidden[start + i]) * widen(hidden[start + i])
    factor = np.float32(1.0) / np.sqrt(squares / np.float32(size) + eps)
    for i in range(size):
        out[start + i] = narrow(out[start + i], widen(hidden[start + i]) * factor * widen(weight[i]))
