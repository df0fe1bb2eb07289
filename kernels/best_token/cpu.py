"""best_token for the CPU, in Numba (interface: kernels.interface.BestToken): rows shared out, no copy."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_math import compiled, exponential, flat_view
from kernels.threads import match_threads

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def best_token(scores: Tensor) -> tuple[Tensor, Tensor]:
    match_threads()
    rows, vocab_size = scores.shape
    token_ids, log_sum_exp = torch.empty(rows, dtype=torch.int64), torch.empty(rows)
    _read_rows(flat_view(scores.contiguous()), vocab_size, token_ids.numpy(), log_sum_exp.numpy())
    return token_ids, log_sum_exp


@compiled(parallel=True)
def _read_rows(scores, vocab_size, token_ids, log_sum_exp):
    """scores [rows * vocab_size] float32."""
    if len(token_ids) == 1:  # waking another thread would take longer
        _read_row(scores, token_ids, log_sum_exp, 0)
    else:
        for row in prange(len(token_ids)):
            _read_row(scores[row * vocab_size : (row + 1) * vocab_size], token_ids, log_sum_exp, row)


@compiled()
def _read_row(scores, token_ids, log_sum_exp, row):
    best = scores[0]
    for i in range(np.uintp(len(scores))):
        best = max(best, scores[i])
    total = np.float32(0.0)
    for i in range(np.uintp(len(scores))):
        total += exponential(scores[i] - best)
    first = np.uintp(0)
    while first < np.uintp(len(scores)) - np.uintp(1) and scores[first] != best:
        first += np.uintp(1)
    token_ids[row] = first
    log_sum_exp[row] = best + np.log(total)
