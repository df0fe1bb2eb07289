"""paged_attention in plain PyTorch (interface: kernels.interface.PagedAttention).

One sequence at a time: gather its keys and values out of the blocks, then textbook attention. The gather is
what a paged kernel exists to avoid; here it keeps the definition readable.
"""

import torch
from torch import Tensor


def paged_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    seq_lens: Tensor,
    query_start_loc: Tensor,
    *,
    scale: float,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    max_query_len: int | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """See kernels.interface.PagedAttention."""
    out = torch.zeros_like(query)
    lse = torch.full(query.shape[:2], -torch.inf, dtype=torch.float32, device=query.device)
    bounds = query_start_loc.tolist()
    for s, seq_len in enumerate(seq_lens.tolist()):
        rows = slice(bounds[s], bounds[s + 1])
        if seq_len == 0 or rows.start == rows.stop:
            continue
        slots = _slots_of(block_table[s], seq_len, key_cache.shape[1])
        scores = _scores(query[rows], _gather(key_cache, slots, query.shape[1]), scale, soft_cap)
        visible = _causal_mask(rows.stop - rows.start, seq_len, sliding_window, query.device)
        scores = scores.masked_fill(~visible, -torch.inf)
        values = _gather(value_cache, slots, query.shape[1])
        out[rows] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).to(query.dtype)
        lse[rows] = scores.logsumexp(-1).T
    return (out, lse) if return_lse else out


def _slots_of(block_ids: Tensor, seq_len: int, block_size: int) -> Tensor:
    """The slots of positions 0 .. seq_len - 1: [seq_len] int64."""
    positions = torch.arange(seq_len, device=block_ids.device)
    return block_ids[positions // block_size].long() * block_size + positions % block_size


def _gather(cache: Tensor, slots: Tensor, num_heads: int) -> Tensor:
    """The cache rows of `slots`, each KV head repeated for its group: [seq_len, num_heads, head_dim] float32."""
    rows = cache.view(-1, *cache.shape[2:])[slots].float()
    return rows.repeat_interleave(num_heads // cache.shape[2], dim=1)


def _scores(query: Tensor, keys: Tensor, scale: float, soft_cap: float | None) -> Tensor:
    """Scaled, optionally capped scores: [num_heads, query_len, seq_len] float32."""
    scores = torch.einsum("qhd,khd->hqk", query.float(), keys) * scale
    return scores if soft_cap is None else soft_cap * torch.tanh(scores / soft_cap)


def _causal_mask(query_len: int, seq_len: int, sliding_window: int | None, device: torch.device) -> Tensor:
    """True where a query may look: [query_len, seq_len] bool."""
    key = torch.arange(seq_len, device=device)
    position = key[seq_len - query_len :, None]
    visible = key <= position
    return visible if sliding_window is None else visible & (key > position - sliding_window)
