"""What the two attention kernels of the CPU have in common: their arguments, and the soft cap of scores.

Tensors are flat arrays, for compiled callers too.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from typing import Any, NamedTuple

import numba
import numpy as np

from kernels.numba_intrinsics import exponential

U = np.uintp
ONE, TWO = np.float32(1.0), np.float32(2.0)


class Batch(NamedTuple):
    """The tensors of a call, as in kernels.interface.PagedAttention. `out` and `lse` are filled."""

    query: Any  # [num_tokens * num_heads * head_dim] float32
    key_cache: Any  # [num_blocks * block_size * num_kv_heads * head_dim] float32, or uint16 bits of bfloat16
    value_cache: Any  # like key_cache
    block_table: Any  # [num_seqs, max_blocks_per_seq] int32
    seq_lens: Any  # [num_seqs] int32
    query_start_loc: Any  # [num_seqs + 1] int32
    out: Any  # [num_tokens * num_heads * head_dim] float32
    lse: Any  # [num_tokens * num_heads] float32


class Sizes(NamedTuple):
    """What the flat arrays are folded by, unsigned: a signed index costs the inner loops a test for negative values."""

    num_heads: Any
    num_kv_heads: Any
    head_dim: Any
    block_size: Any


class Softmax(NamedTuple):
    """The numbers of the softmax."""

    scale: Any  # float32, of the scores
    window: Any  # int, sliding window in keys, 0 for none
    soft_cap: Any  # float32, of the scores, 0 for none


@numba.njit(inline="always")
def capped(score, soft_cap):
    """soft_cap * tanh(score / soft_cap)."""
    return soft_cap * (ONE - TWO / (ONE + exponential(TWO * score / soft_cap)))
