"""rms_norm for the CPU, in Numba (interface: kernels.interface.RmsNorm): two passes over a row, one call in all."""

import numpy as np
import torch
from torch import Tensor

from kernels.numba_math import compiled, flat_view, lasting_view, narrow, widen

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def rms_norm(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    out = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    _normalise_rows(flat_view(hidden.contiguous()), lasting_view(weight), np.float32(eps), flat_view(out))
    return out


@compiled()
def _normalise_rows(hidden, weight, eps, out):
    """hidden, out [num_tokens * size]; weight [size]."""
    size = np.uintp(len(weight))
    for start in range(np.uintp(0), np.uintp(len(hidden)), size):
        squares = np.float32(0.0)
        for i in range(size):
            squares += widen(hidden[start + i]) * widen(hidden[start + i])
        factor = np.float32(1.0) / np.sqrt(squares / np.float32(size) + eps)
        for i in range(size):
            out[start + i] = narrow(out[start + i], widen(hidden[start + i]) * factor * widen(weight[i]))
