"""Paged attention as the loop that comes to mind first, in Numba and in float32, for decode."""

import numba
import numpy as np
import torch
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"


def plain_loop(query: Tensor, key_cache: Tensor, value_cache: Tensor, block_table: Tensor, context: int) -> Tensor:
    """[num_seqs, num_heads, head_dim] query; follows the block table [num_seqs, width] to `context` keys."""
    out = torch.empty_like(query)
    arrays = (tensor.numpy() for tensor in (query, key_cache, value_cache, block_table, out))
    _plain_loop(*arrays, context)
    return out


@numba.njit(parallel=True, fastmath=True)
def _plain_loop(query, key_cache, value_cache, block_table, out, context):
    num_seqs, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    group, scale = num_heads // num_kv_heads, np.float32(head_dim**-0.5)
    for item in numba.prange(num_seqs * num_kv_heads):
        s, kv_head = item // num_kv_heads, item % num_kv_heads
        scores = np.empty((group, context), np.float32)
        for position in range(context):
            block, offset = block_table[s, position // block_size], position % block_size
            for g in range(group):
                score = np.float32(0)
                for d in range(head_dim):
                    score += query[s, kv_head * group + g, d] * key_cache[block, offset, kv_head, d]
                scores[g, position] = score * scale
        sums = np.zeros((group, head_dim), np.float32)
        totals = np.zeros(group, np.float32)
        maxima = [scores[g].max() for g in range(group)]
        for position in range(context):
            block, offset = block_table[s, position // block_size], position % block_size
            for g in range(group):
                weight = np.exp(scores[g, position] - maxima[g])
                totals[g] += weight
                for d in range(head_dim):
                    sums[g, d] += weight * value_cache[block, offset, kv_head, d]
        for g in range(group):
            for d in range(head_dim):
                out[s, kv_head * group + g, d] = sums[g, d] / totals[g]
