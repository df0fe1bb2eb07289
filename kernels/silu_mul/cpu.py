"""silu_mul for the CPU, in Numba (interface: kernels.interface.SiluMul): one pass, no intermediate tensor."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_math import compiled, exponential, flat_view, narrow, widen
from kernels.threads import match_threads

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

FEW = 8_192
"""Numbers that one thread has gated before the others are awake."""


def silu_mul(gate_up: Tensor) -> Tensor:
    match_threads()
    num_tokens, doubled = gate_up.shape
    out = torch.empty(num_tokens, doubled // 2, dtype=gate_up.dtype)
    gate_rows(flat_view(gate_up.contiguous()), doubled // 2, flat_view(out))
    return out


@compiled(parallel=True)
def gate_rows(gate_up, size, out):
    """gate_up [num_tokens * 2 * size], each row the gates and then the ups; out [num_tokens * size]."""
    rows = len(out) // size
    if len(out) <= FEW:
        for row in range(rows):
            _gate_row(gate_up, size, out, row)
    else:
        for row in prange(rows):
            _gate_row(gate_up, size, out, row)


@compiled()
def _gate_row(gate_up, size, out, row):
    size, one = np.uintp(size), np.float32(1.0)
    start = np.uintp(row) * size
    gates = start + start
    for i in range(size):
        gate = widen(gate_up[gates + i])
        gated = gate / (one + exponential(-gate)) * widen(gate_up[gates + size + i])
        out[start + i] = narrow(out[start + i], gated)
