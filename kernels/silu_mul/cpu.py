"""silu_mul for the CPU, in Numba (interface: kernels.interface.SiluMul): one pass, no intermediate tensor."""

import numpy as np
import torch
from torch import Tensor

from kernels.numba_math import compiled, exponential, flat_view, narrow, widen

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def silu_mul(gate_up: Tensor) -> Tensor:
    num_tokens, doubled = gate_up.shape
    out = torch.empty(num_tokens, doubled // 2, dtype=gate_up.dtype)
    _gate_rows(flat_view(gate_up.contiguous()), doubled // 2, flat_view(out))
    return out


@compiled()
def _gate_rows(gate_up, size, out):
    """gate_up [num_tokens * 2 * size], each row the gates and then the ups; out [num_tokens * size]."""
    size, one = np.uintp(size), np.float32(1.0)
    for start in range(np.uintp(0), np.uintp(len(out)), size):
        row = start + start
        for i in range(size):
            gate = widen(gate_up[row + i])
            gated = gate / (one + exponential(-gate)) * widen(gate_up[row + size + i])
            out[start + i] = narrow(out[start + i], gated)
