"""argmax_logsumexp for the CPU, in Numba (interface: kernels.interface.ArgmaxLogsumexp): one thread takes a row."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_intrinsics import compiled, exponential, flat_view
from kernels.threads import parallel_loops

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def argmax_logsumexp(logits: Tensor) -> Tensor:
    """See kernels.interface.ArgmaxLogsumexp."""
    rows, vocab_size = logits.shape
    out = torch.empty(rows, 3, dtype=torch.float64)
    with parallel_loops():
        _reduce_rows(flat_view(logits.contiguous()), vocab_size, out.numpy())
    return out


@compiled(parallel=True)
def _reduce_rows(logits, vocab_size, out):
    """logits [rows * vocab_size] float32; out [rows, 3] float64."""
    if len(out) == 1:  # waking another thread would take longer
        _reduce_row(logits, out[0])
    else:
        for row in prange(len(out)):
            _reduce_row(logits[row * vocab_size : (row + 1) * vocab_size], out[row])


@compiled()
def _reduce_row(logits, out):
    maximum = logits[0]
    for i in range(np.uintp(len(logits))):
        maximum = max(maximum, logits[i])
    total = np.float32(0.0)
    for i in range(np.uintp(len(logits))):
        total += exponential(logits[i] - maximum)
    first = np.uintp(0)
    while first < np.uintp(len(logits)) - np.uintp(1) and logits[first] != maximum:
        first += np.uintp(1)
    out[0] = first
    out[1] = maximum
    out[2] = maximum + np.log(total)
