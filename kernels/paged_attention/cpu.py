"""paged_attention for the CPU, in Numba (interface: kernels.interface.PagedAttention).

Nothing is gathered: the loops read keys and values where the block table says they are. Sequences with one query
token, which decode, are limited by memory and have loops of their own (cpu_decode.py); the others are limited by
arithmetic, and share each key they read among many rows (cpu_prefill.py). A batch may hold both.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np
import torch
from torch import Tensor

from kernels.numba_intrinsics import cached_flat_view, compiled, flat_view
from kernels.paged_attention.cpu_batch import Batch, Sizes, Softmax, U
from kernels.paged_attention.cpu_decode import attend_decode
from kernels.paged_attention.cpu_prefill import attend_prefill
from kernels.threads import match_threads, parallel_loops


def paged_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
    scale: float, sliding_window: int | None = None, soft_cap: float | None = None,
    max_query_len: int | None = None, return_lse: bool = False, batch_invariant: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """See kernels.interface.PagedAttention."""
    if key_cache.dtype not in (torch.float32, torch.bfloat16):
        raise ValueError(f"the cpu attention backend reads float32 and bfloat16 caches, not {key_cache.dtype}")
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = key_cache.shape
    out, lse = np.empty(query.numel(), np.float32), np.empty(num_tokens * num_heads, np.float32)
    with parallel_loops():
        attend_batch(
            flat_view(query.float().contiguous()), cached_flat_view(key_cache), cached_flat_view(value_cache),
            block_table.numpy(), seq_lens.numpy(), query_start_loc.numpy(), out, lse,
            num_heads, num_kv_heads, head_dim, block_size,
            np.float32(scale), sliding_window or 0, np.float32(soft_cap or 0.0), batch_invariant, match_threads(),
        )  # fmt: skip
    result = torch.from_numpy(out).view(query.shape).to(query.dtype)
    return (result, torch.from_numpy(lse).view(num_tokens, num_heads)) if return_lse else result


@compiled()
def attend_batch(
    query, key_cache, value_cache, block_table, seq_lens, query_start_loc, out, lse,
    num_heads, num_kv_heads, head_dim, block_size, scale, window, soft_cap, batch_invariant, num_threads,
):  # fmt: skip
    """Attention of a whole batch, for compiled callers too. The parameters are the fields of the types in cpu_batch.py.

    One by one, since Numba takes four microseconds longer to receive a tuple from Python. With `batch_invariant` all
    tokens go the one way whose bits do not depend on how many come together.
    """
    batch = Batch(query, key_cache, value_cache, block_table, seq_lens, query_start_loc, out, lse)
    sizes = Sizes(U(num_heads), U(num_kv_heads), U(head_dim), U(block_size))
    softmax = Softmax(scale, window, soft_cap)
    num_decodes, num_prefills, least_tokens = 0, 0, 1 if batch_invariant else 2
    for s in range(len(seq_lens)):
        query_len = query_start_loc[s + 1] - query_start_loc[s]
        num_decodes += query_len == 1 and not batch_invariant
        num_prefills += query_len >= least_tokens
    if num_decodes > 0:
        attend_decode(batch, sizes, softmax, num_threads)
    if num_prefills > 0:
        attend_prefill(batch, sizes, softmax, least_tokens, num_threads)
