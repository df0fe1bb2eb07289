"""rms_norm for the CPU, in Numba (interface: kernels.interface.RmsNorm): two passes over a row, one call in all."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_math import compiled, flat_view, lasting_view, narrow, widen
from kernels.threads import match_threads

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

FEW = 32_768
"""Numbers that one thread has normalised before the others are awake."""


def rms_norm(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    match_threads()
    out = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    normalise_rows(flat_view(hidden.contiguous()), lasting_view(weight), np.float32(eps), flat_view(out))
    return out


@compiled(parallel=True)
def normalise_rows(hidden, weight, eps, out):
    """hidden, out [num_tokens * size]; weight [size]."""
    rows = len(hidden) // len(weight)
    if len(hidden) <= FEW:
        for row in range(rows):
            _normalise_row(hidden, weight, eps, out, row)
    else:
        for row in prange(rows):
            _normalise_row(hidden, weight, eps, out, row)


@compiled()
def _normalise_row(hidden, weight, eps, out, row):
    size = np.uintp(len(weight))
    start = np.uintp(row) * size
    squares = np.float32(0.0)
    for i in range(size):
        squares += widen(hidden[start + i]) * widen(hidden[start + i])
    factor = np.float32(1.0) / np.sqrt(squares / np.float32(size) + eps)
    for i in range(size):
        out[start + i] = narrow(out[start + i], widen(hidden[start + i]) * factor * widen(weight[i]))
