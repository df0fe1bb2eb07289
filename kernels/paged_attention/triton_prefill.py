"""Attention of prefill and chunked prefill: many query tokens a sequence, ragged over the batch.

A program takes a tile of query tokens with all query heads of one KV head: row r of the tile is token r // GROUP and
head r % GROUP of the group, so that any group fills the tile and each key is read once for all of them.
"""

import triton
import triton.language as tl

from kernels.paged_attention.triton_tile import attend_keys

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803


@triton.jit(do_not_specialize=["num_seqs", "table_stride"])
def prefill_kernel(
    query_ptr,  # [num_tokens, NUM_KV_HEADS * GROUP, HEAD_DIM], rows query_stride apart
    key_cache_ptr,  # [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM]
    value_cache_ptr,  # [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM]
    block_table_ptr,  # [num_seqs, max_blocks_per_seq] int32, rows table_stride apart
    seq_lens_ptr,  # [num_seqs] int32
    query_start_loc_ptr,  # [num_seqs + 1] int32
    out_ptr,  # [num_tokens, NUM_KV_HEADS * GROUP, HEAD_DIM]
    lse_ptr,  # [num_tokens, NUM_KV_HEADS * GROUP] float32, or None
    num_seqs,
    query_stride,
    table_stride,
    scale,
    soft_cap,
    BLOCK_SIZE: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Grid: (num_tokens // TOKENS + num_seqs, NUM_KV_HEADS), TOKENS being ROWS // GROUP."""
    TOKENS: tl.constexpr = ROWS // GROUP  # noqa: N806
    # Late tiles see the most keys. Starting them first leaves the short ones to fill the gaps at the end.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    kv_head = tl.program_id(1)
    s = sequence_of_tile(query_start_loc_ptr, tile, num_seqs, TOKENS)
    query_start = tl.load(query_start_loc_ptr + s)
    query_len = tl.load(query_start_loc_ptr + s + 1) - query_start
    first_token = (tile - first_tile(query_start, s, TOKENS)) * TOKENS
    # The decode kernel serves sequences with a single query token.
    if query_len == 1 or first_token >= query_len:
        return
    seq_len = tl.load(seq_lens_ptr + s)
    first_position = seq_len - query_len + first_token
    first_key = max(0, first_position - WINDOW + 1) if WINDOW > 0 else 0
    end_key = min(seq_len, first_position + TOKENS)

    row = tl.arange(0, ROWS)
    dim = tl.arange(0, DIM)
    token = first_token + row // GROUP
    head = kv_head * GROUP + row % GROUP
    # Rows past the tile's last whole group, past the sequence's last token, or in the padding of head_dim.
    row_exists = (row < TOKENS * GROUP) & (token < query_len)
    exists = row_exists[:, None] & (dim < HEAD_DIM)[None, :]
    token = (query_start + token).to(tl.int64)
    query_element = token[:, None] * query_stride + (head * HEAD_DIM)[:, None] + dim[None, :]
    query = tl.load(query_ptr + query_element, mask=exists, other=0.0).to(key_cache_ptr.dtype.element_ty)

    out, lse = attend_keys(
        query, first_position + row // GROUP, key_cache_ptr, value_cache_ptr,
        block_table_ptr + s.to(tl.int64) * table_stride, first_key, end_key, kv_head, scale, soft_cap,
        BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM, WINDOW, ROWS, KEYS, DIM, PRECISION,
    )  # fmt: skip
    out_row = token * (NUM_KV_HEADS * GROUP) + head
    out_element = out_row[:, None] * HEAD_DIM + dim[None, :]
    tl.store(out_ptr + out_element, out.to(out_ptr.dtype.element_ty), mask=exists)
    if lse_ptr is not None:
        tl.store(lse_ptr + out_row, lse, mask=row_exists)


@triton.jit
def first_tile(query_start, s, TOKENS: tl.constexpr):
    """The first tile of sequence s. Rounding down, with one tile more a sequence, leaves room for every one."""
    return query_start // TOKENS + s


@triton.jit
def sequence_of_tile(
    query_start_loc_ptr,  # [num_seqs + 1] int32
    tile,
    num_seqs,
    TOKENS: tl.constexpr,
):
    """The last sequence that starts at this tile or before, by binary search: the host never reads the lengths."""
    low = tl.zeros([], tl.int32)
    high = num_seqs
    while high - low > 1:
        middle = (low + high) // 2
        starts_later = first_tile(tl.load(query_start_loc_ptr + middle), middle, TOKENS) > tile
        low = tl.where(starts_later, low, middle)
        high = tl.where(starts_later, middle, high)
    return low
