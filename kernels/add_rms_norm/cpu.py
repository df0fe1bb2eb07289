"""add_rms_norm for the CPU, in Numba (interface: kernels.interface.AddRmsNorm): a sum is normalised while in cache."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_intrinsics import cached_flat_view, compiled, flat_view, narrow, widen
from kernels.rms_norm.cpu import SERIAL_ELEMENTS, rms_norm_row
from kernels.threads import parallel_loops

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """See kernels.interface.AddRmsNorm."""
    dtype = torch.promote_types(x.dtype, residual.dtype)
    total = torch.empty(residual.shape, dtype=dtype)
    out = torch.empty(residual.shape, dtype=dtype)
    with parallel_loops():
        _add_rms_norm_rows(
            flat_view(x.contiguous()), flat_view(residual.contiguous()), cached_flat_view(weight), np.float32(eps),
            flat_view(total), flat_view(out),
        )  # fmt: skip
    return out, total


@compiled(parallel=True)
def _add_rms_norm_rows(x, residual, weight, eps, total, out):
    """x, residual, total, out [num_tokens * size]; weight [size]."""
    rows = len(x) // len(weight)
    if len(x) <= SERIAL_ELEMENTS:
        for row in range(rows):
            _add_row(x, residual, len(weight), total, row)
            rms_norm_row(total, weight, eps, out, row)
    else:
        for row in prange(rows):
            _add_row(x, residual, len(weight), total, row)
            rms_norm_row(total, weight, eps, out, row)


@compiled()
def _add_row(x, residual, size, total, row):
    start = np.uintp(row) * np.uintp(size)
    for i in range(start, start + np.uintp(size)):
        total[i] = narrow(total[i], widen(residual[i]) + widen(x[i]))
