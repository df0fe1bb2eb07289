"""dequantize_int4 for the CPU, in Numba (reference.py defines it): one pass, rows shared out."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_intrinsics import compiled, flat_view, narrow, widen
from kernels.threads import parallel_loops

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def dequantize_int4(nibbles: Tensor, scale_and_zero: Tensor) -> Tensor:
    """As in reference.py: [rows, columns / 2] uint8 and [groups, rows, 2] bfloat16 -> [rows, columns] bfloat16."""
    rows, half_columns = nibbles.shape
    weight = torch.empty(rows, 2 * half_columns, dtype=torch.bfloat16)
    with parallel_loops():
        _unpack_rows(flat_view(nibbles), flat_view(scale_and_zero), rows, half_columns // 16, flat_view(weight))
    return weight


@compiled(parallel=True)
def _unpack_rows(
    nibbles,  # [rows * groups * 16]
    scale_and_zero,  # [groups * rows * 2]
    rows,
    groups,
    weight,  # [rows * groups * 32]
):
    eight = np.float32(8.0)
    for row in prange(rows):
        for group in range(groups):
            pair = np.uintp((group * rows + row) * 2)
            scale, zero = widen(scale_and_zero[pair]), widen(scale_and_zero[pair + np.uintp(1)])
            source = np.uintp((row * groups + group) * 16)
            target = source + source
            for j in range(np.uintp(16)):
                byte = nibbles[source + j]
                low, high = np.float32(byte & 15), np.float32(byte >> 4)
                weight[target + j] = narrow(weight[target + j], (low - eight) * scale + zero)
                at = target + j + np.uintp(16)
                weight[at] = narrow(weight[at], (high - eight) * scale + zero)
