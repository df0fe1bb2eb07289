"""Attention of a whole batch on the CPU, for compiled callers: decoding tokens by one way, prompts by another."""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from kernels.numba_math import compiled
from kernels.paged_attention.cpu_loops import attend_tokens
from kernels.paged_attention.cpu_prefill import attend_prompts


@compiled()
def attend_batch(
    query,  # [num_tokens * num_heads * head_dim] float32
    key_cache,  # [num_blocks * block_size * num_kv_heads * head_dim] float32, or uint16 bits of bfloat16
    value_cache,  # like key_cache
    block_table,  # [num_seqs, max_blocks_per_seq] int32
    seq_lens,  # [num_seqs] int32
    query_start_loc,  # [num_seqs + 1] int32
    num_heads,
    num_kv_heads,
    head_dim,
    block_size,
    scale,  # float32
    window,  # int, 0 for none
    soft_cap,  # float32, 0 for none
    num_threads,
    out,  # [num_tokens * num_heads * head_dim] float32
    lse,  # [num_tokens * num_heads] float32
):
    singles, prompts = 0, 0
    for s in range(len(seq_lens)):
        query_len = query_start_loc[s + 1] - query_start_loc[s]
        singles += query_len == 1
        prompts += query_len > 1
    if singles > 0:
        attend_tokens(
            query, key_cache, value_cache, block_table, seq_lens, query_start_loc,
            num_heads, num_kv_heads, head_dim, block_size, scale, window, soft_cap, num_threads, out, lse,
        )  # fmt: skip
    if prompts > 0:
        attend_prompts(
            query, key_cache, value_cache, block_table, seq_lens, query_start_loc,
            num_heads, num_kv_heads, head_dim, block_size, scale, window, soft_cap, num_threads, out, lse,
        )  # fmt: skip
