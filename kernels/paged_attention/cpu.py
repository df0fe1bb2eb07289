"""paged_attention for the CPU, in Numba (interface: kernels.interface.PagedAttention).

Nothing is gathered: the loops read keys and values where the block table says they are. Sequences with one query
token, which decode, are limited by memory and have loops of their own (cpu_loops.py); the others are limited by
arithmetic, and share each key they read among many rows (cpu_prefill.py). A batch may hold both.
"""

import numpy as np
import torch
from torch import Tensor

from kernels.numba_math import flat_view, lasting_view
from kernels.paged_attention.cpu_batch import attend_batch
from kernels.threads import match_threads


def paged_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
    scale: float, sliding_window: int | None = None, soft_cap: float | None = None, return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    if key_cache.dtype not in (torch.float32, torch.bfloat16):
        raise ValueError(f"the cpu attention backend reads float32 and bfloat16 caches, not {key_cache.dtype}")
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    out, lse = np.empty(query.numel(), np.float32), np.empty(num_tokens * num_heads, np.float32)
    attend_batch(
        flat_view(query.float().contiguous()), lasting_view(key_cache), lasting_view(value_cache),
        block_table.numpy(), seq_lens.numpy(), query_start_loc.numpy(),
        num_heads, num_kv_heads, head_dim, block_size,
        np.float32(scale), sliding_window or 0, np.float32(soft_cap or 0.0), match_threads(),
        out, lse,
    )  # fmt: skip
    result = torch.from_numpy(out).view(query.shape).to(query.dtype)
    return (result, torch.from_numpy(lse).view(num_tokens, num_heads)) if return_lse else result
