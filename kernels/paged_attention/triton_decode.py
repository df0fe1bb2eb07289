"""Attention of decode: one query token a sequence, its keys split among programs (flash-decoding).

With few sequences and long contexts there are fewer (sequence, KV head) pairs than multiprocessors; splitting the
keys keeps all of them reading memory. Each split leaves a whole small result, an output with its log-sum-exp, and
`merge_kernel` weighs them by their share of the softmax.
"""

import triton
import triton.language as tl

from kernels.paged_attention.triton_tile import attend_keys

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803


@triton.jit(do_not_specialize=["table_stride"])
def decode_kernel(
    query_ptr,  # [num_tokens, NUM_KV_HEADS * GROUP, HEAD_DIM], rows query_stride apart
    key_cache_ptr,  # [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM]
    value_cache_ptr,  # [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM]
    block_table_ptr,  # [num_seqs, max_blocks_per_seq] int32, rows table_stride apart
    seq_lens_ptr,  # [num_seqs] int32
    query_start_loc_ptr,  # [num_seqs + 1] int32
    out_ptr,  # [num_tokens, heads, HEAD_DIM]; with splits [num_seqs, heads, SPLITS, HEAD_DIM] float32
    lse_ptr,  # [num_tokens, heads] float32 or None; with splits [num_seqs, heads, SPLITS] float32
    query_stride,
    table_stride,
    scale,
    soft_cap,
    BLOCK_SIZE: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,  # GROUP padded to a power of two, and to the 16 rows that a tensor core takes
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Grid: (num_seqs, NUM_KV_HEADS, SPLITS)."""
    s = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    token = tl.load(query_start_loc_ptr + s).to(tl.int64)
    # The prefill kernel serves sequences with more query tokens.
    if tl.load(query_start_loc_ptr + s + 1) - token != 1:
        return
    seq_len = tl.load(seq_lens_ptr + s)
    visible_from = max(0, seq_len - WINDOW) if WINDOW > 0 else 0
    share = tl.cdiv(tl.cdiv(seq_len - visible_from, SPLITS), KEYS) * KEYS
    first_key = visible_from + split * share
    end_key = min(seq_len, first_key + share)

    row = tl.arange(0, ROWS)
    dim = tl.arange(0, DIM)
    head = kv_head * GROUP + row
    exists = (row < GROUP)[:, None] & (dim < HEAD_DIM)[None, :]
    query_element = token * query_stride + (head * HEAD_DIM)[:, None] + dim[None, :]
    query = tl.load(query_ptr + query_element, mask=exists, other=0.0).to(key_cache_ptr.dtype.element_ty)
    position = tl.zeros([ROWS], tl.int32) + (seq_len - 1)

    out, lse = attend_keys(
        query, position, key_cache_ptr, value_cache_ptr,
        block_table_ptr + s * table_stride, first_key, end_key, kv_head, scale, soft_cap,
        BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM, WINDOW, ROWS, KEYS, DIM, PRECISION,
    )  # fmt: skip
    out_row = ((token if SPLITS == 1 else s) * (NUM_KV_HEADS * GROUP) + head) * SPLITS + split
    out_element = out_row[:, None] * HEAD_DIM + dim[None, :]
    tl.store(out_ptr + out_element, out.to(out_ptr.dtype.element_ty), mask=exists)
    if lse_ptr is not None:
        tl.store(lse_ptr + out_row, lse, mask=row < GROUP)


@triton.jit
def merge_kernel(
    split_out_ptr,  # [num_seqs, num_heads, SPLITS, HEAD_DIM] float32
    split_lse_ptr,  # [num_seqs, num_heads, SPLITS] float32, -inf where a split had no keys
    query_start_loc_ptr,  # [num_seqs + 1] int32
    out_ptr,  # [num_tokens, num_heads, HEAD_DIM]
    lse_ptr,  # [num_tokens, num_heads] float32, or None
    HEAD_DIM: tl.constexpr,
    SPLITS: tl.constexpr,
    DIM: tl.constexpr,
):
    """Grid: (num_seqs, num_heads)."""
    s = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    token = tl.load(query_start_loc_ptr + s).to(tl.int64)
    if tl.load(query_start_loc_ptr + s + 1) - token != 1:
        return
    split = (s * tl.num_programs(1) + head) * SPLITS + tl.arange(0, SPLITS)
    dim = tl.arange(0, DIM)
    lse = tl.load(split_lse_ptr + split)
    maximum = tl.max(lse, 0)
    # All splits are empty where seq_len is 0, a padded row of a CUDA graph: the output is 0.
    weights = tl.exp(lse - tl.where(maximum == float("-inf"), 0.0, maximum))
    total = tl.sum(weights, 0)
    total = tl.where(total > 0, total, 1.0)
    in_head = dim < HEAD_DIM
    parts = tl.load(split_out_ptr + split[:, None] * HEAD_DIM + dim[None, :], mask=in_head[None, :], other=0.0)
    out = tl.sum(parts * weights[:, None], 0) / total
    out_row = token * tl.num_programs(1) + head
    tl.store(out_ptr + out_row * HEAD_DIM + dim, out.to(out_ptr.dtype.element_ty), mask=in_head)
    if lse_ptr is not None:
        tl.store(lse_ptr + out_row, maximum + tl.log(total))
