"""What paged attention is measured against: ways to attend that a reader might try first. Decode and prefill."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


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
    """PyTorch's compiled flex_attention over the same contiguous tensors."""
    query = query.view(len(keys), -1, *query.shape[1:]).transpose(1, 2)
    mask = _causal_mask(query.shape[2], query.device) if query.shape[2] > 1 else None
    out = _compiled_flex_attention()(query, keys, values, block_mask=mask, enable_gqa=True)
    return out.transpose(1, 2).flatten(0, 1)


@cache
def _causal_mask(num_tokens: int, device: torch.device) -> BlockMask:
    from torch.nn.attention.flex_attention import create_block_mask  # seconds to import, and rarely asked for

    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return query >= key

    return create_block_mask(sees, None, None, num_tokens, num_tokens, device=str(device))


@cache
def _compiled_flex_attention() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)
