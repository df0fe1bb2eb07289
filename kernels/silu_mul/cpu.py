"""silu_mul for the CPU, in Numba (interface: kernels.interface.SiluMul): one pass, no intermediate tensor."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_intrinsics import compiled, exponential, flat_view, narrow, widen
from kernels.threads import parallel_loops

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

SERIAL_ELEMENTS = 8_192
"""Numbers that one thread has gated before the others are awake."""


def silu_mul(gate_up: Tensor) -> Tensor:
    """See kernels.interface.SiluMul."""
    num_tokens, doubled = gate_up.shape
    out = torch.empty(num_tokens, doubled // 2, dtype=gate_up.dtype)
    with parallel_loops():
        silu_mul_rows(flat_view(gate_up.contiguous()), doubled // 2, flat_view(out))
    return out


@compiled(parallel=True)
def silu_mul_rows(gate_up, size, out):
    """gate_up [num_tokens * 2 * size], each row the gates and then the ups; out [num_tokens * size]."""
    rows = len(out) // size
    if len(out) <= SERIAL_ELEMENTS:
        for row in range(rows):
            _silu_mul_row(gate_up, size, out, row)
    else:
        for row in prange(rows):
            _silu_mul_row(gate_up, size, out, row)


@compiled()
def _silu_mul_row(gate_up, size, out, row):
    size, one = np.uintp(size), np.float32(1.0)
    start = np.uintp(row) * size
    gates = start + start
    for i in range(size):
        gate = widen(gate_up[gates + i])
        gated = gate / (one + exponential(-gate)) * widen(gate_up[gates + size + i])
        out[start + i] = narrow(out[start + i], gated)
