"""What paged attention is measured against: ways to attend that a reader might try first. Decode and prefill."""

from collections.abc import Callable
from functools import cache

import numba
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"


def gather_then_sdpa(
    query: Tensor, key_cache: Tensor, value_cache: Tensor, block_table: Tensor, context: int
) -> Tensor:
    """Copy each sequence's blocks together, then attend: what PagedAttention exists to avoid."""
    num_seqs = len(block_table)
    keys, values = (
        cache[block_table].view(num_seqs, -1, *cache.shape[2:])[:, :context].transpose(1, 2)
        for cache in (key_cache, value_cache)
    )
    return contiguous_sdpa(query, keys, values)


def contiguous_sdpa(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """PyTorch's attention over [num_seqs, num_kv_heads, context, head_dim]: no paging at all.

    The query tokens [num_tokens, num_heads, head_dim] are equally many for each sequence: one, or the whole context.
    """
    query = query.view(len(keys), -1, *query.shape[1:]).transpose(1, 2)
    out = F.scaled_dot_product_attention(query, keys, values, is_causal=query.shape[2] > 1, enable_gqa=True)
    return out.transpose(1, 2).flatten(0, 1)


def flex_sdpa(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """PyTorch's compiled flex_attention over the same contiguous tensors, for decode."""
    out = _compiled_flex_attention()(query.view(len(keys), -1, 1, query.shape[-1]), keys, values, enable_gqa=True)
    return out.squeeze(2)


@cache
def _compiled_flex_attention() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


def plain_loop(query: Tensor, key_cache: Tensor, value_cache: Tensor, block_table: Tensor, context: int) -> Tensor:
    """The loop that comes to mind first, in Numba and in float32: follows the block table, for decode."""
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
