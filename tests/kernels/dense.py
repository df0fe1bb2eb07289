"""The judge of every backend: dense attention in float64 over plain tensors. It knows no blocks, imports no kernel."""

import torch
from torch import Tensor


def dense_attention(
    query: Tensor,  # [query_len, num_heads, head_dim], the last query_len positions of the sequence
    keys: Tensor,  # [seq_len, num_kv_heads, head_dim]
    values: Tensor,  # [seq_len, num_kv_heads, head_dim]
    scale: float,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Output [query_len, num_heads, head_dim] and log-sum-exp [query_len, num_heads], float64."""
    query, keys, values = query.double(), keys.double(), values.double()
    group = query.shape[1] // keys.shape[1]
    out = torch.zeros_like(query)
    lse = torch.zeros(query.shape[:2], dtype=torch.float64)
    first_position = len(keys) - len(query)
    for row in range(len(query)):
        position = first_position + row
        start = 0 if sliding_window is None else max(0, position - sliding_window + 1)
        for head in range(query.shape[1]):
            seen = keys[start : position + 1, head // group]
            scores = seen @ query[row, head] * scale
            if soft_cap is not None:
                scores = soft_cap * torch.tanh(scores / soft_cap)
            weights = torch.exp(scores - scores.max())
            out[row, head] = weights @ values[start : position + 1, head // group] / weights.sum()
            lse[row, head] = scores.max() + torch.log(weights.sum())
    return out, lse
