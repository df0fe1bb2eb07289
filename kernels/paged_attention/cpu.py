"""paged_attention for the CPU, in Numba (interface: kernels.interface.PagedAttention).

Nothing is gathered: the loops read keys and values where the block table says they are.

A *work item* is a few query tokens of one sequence against a range of its keys, for all heads at once, so that the
cache is read in memory order and each row only once. A token that decodes is split into one item for every CHUNK
keys, which keeps all cores busy on a single long sequence; the partial results are merged by their log-sum-exp
(flash-decoding). The split depends on the sequence alone, so its batch mates never change a bit of its result.

Offsets into the flat caches are unsigned: a signed index costs a test for negative values in the inner loops.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from math import inf
from typing import NamedTuple

import numba
import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.numba_math import compiled, exponential, flat_view, widen

CHUNK = 128
"""Keys scored at a time: the scores of a chunk stay in the first-level cache."""
TILE = 4
"""Query tokens that share one reading of the keys in prefill."""
UNSPLIT = -1

U = np.uintp
MINUS_INFINITY = np.float32(-inf)
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)


class Geometry(NamedTuple):
    """The sizes that the kernels need, in one argument."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    block_size: int


def paged_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
    scale: float, sliding_window: int | None = None, soft_cap: float | None = None, return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    if key_cache.dtype not in (torch.float32, torch.bfloat16):
        raise ValueError(f"the cpu attention backend reads float32 and bfloat16 caches, not {key_cache.dtype}")
    num_tokens, num_heads, head_dim = query.shape
    geometry = Geometry(num_heads, key_cache.shape[2], head_dim, key_cache.shape[1])
    out = torch.zeros(num_tokens, num_heads, head_dim)
    lse = torch.full((num_tokens, num_heads), -inf)
    _attend_batch(
        flat_view(query.float().contiguous()), flat_view(key_cache), flat_view(value_cache),
        block_table.numpy(), seq_lens.numpy(), query_start_loc.numpy(),
        geometry, np.float32(scale), sliding_window or 0, np.float32(soft_cap or 0.0),
        numba.get_num_threads(), flat_view(out), flat_view(lse),
    )  # fmt: skip
    out = out.to(query.dtype)
    return (out, lse) if return_lse else out


@compiled(parallel=True)
def _attend_batch(
    query,  # [num_tokens * num_heads * head_dim] float32
    key_cache,  # [num_blocks * block_size * num_kv_heads * head_dim] float32, or uint16 bits of bfloat16
    value_cache,  # like key_cache
    block_table,  # [num_seqs, max_blocks_per_seq] int32
    seq_lens,  # [num_seqs] int32
    query_start_loc,  # [num_seqs + 1] int32
    geometry,
    scale,  # float32
    window,  # int, 0 for none
    soft_cap,  # float32, 0 for none
    num_threads,
    out,  # [num_tokens * num_heads * head_dim] float32
    lse,  # [num_tokens * num_heads] float32
):
    items, splits, num_partials = _plan(seq_lens, query_start_loc, window)
    num_rows, width = geometry.num_heads, geometry.num_heads * geometry.head_dim
    partial_out = np.empty(num_partials * width, np.float32)
    partial_lse = np.empty(num_partials * num_rows, np.float32)
    for thread in prange(num_threads):
        scores = np.empty(TILE * num_rows * CHUNK, np.float32)
        offsets = np.empty(CHUNK, np.uintp)
        # Items are dealt like cards: later prefill items see more keys, and every thread gets its share of them.
        for i in range(thread, len(items), num_threads):
            s, token, count, position, start, stop, partial = items[i]
            into_out, into_lse, row = out, lse, token
            if partial != UNSPLIT:
                into_out, into_lse, row = partial_out, partial_lse, partial
            _attend_item(
                query[token * width : (token + count) * width], key_cache, value_cache, block_table[s],
                count, position, start, stop, geometry, scale, window, soft_cap, scores, offsets,
                into_out[row * width : (row + count) * width],
                into_lse[row * num_rows : (row + count) * num_rows],
            )  # fmt: skip
    for i in prange(len(splits)):
        token, first, count = splits[i]
        _merge(
            partial_out[first * width : (first + count) * width],
            partial_lse[first * num_rows : (first + count) * num_rows],
            count, geometry, out[token * width : (token + 1) * width], lse[token * num_rows : (token + 1) * num_rows],
        )  # fmt: skip


@compiled()
def _plan(seq_lens, query_start_loc, window):
    """Cut the batch into work items; list the tokens whose items must be merged.

    items  [num_items, 7]: sequence, first token, tokens, position of the first, first key, end of keys, partial row
    splits [num_splits, 3]: token, its first partial row, how many
    """
    items, splits, num_partials = [], [], 0
    for s in range(len(seq_lens)):
        begin, end, seq_len = query_start_loc[s], query_start_loc[s + 1], seq_lens[s]
        for token in range(begin, end, TILE):
            count = min(TILE, end - token)
            position = seq_len - (end - token)
            start, stop = 0, position + count
            if window > 0:
                start = max(0, position - window + 1)
            if stop <= 0:
                continue
            if end - begin > 1 or stop - start <= CHUNK:
                items.append((s, token, count, position, start, stop, UNSPLIT))
                continue
            first = num_partials
            for key in range(start, stop, CHUNK):
                items.append((s, token, count, position, key, min(key + CHUNK, stop), num_partials))
                num_partials += 1
            splits.append((token, first, num_partials - first))
    return items, splits, num_partials


@compiled()
def _attend_item(
    query,  # [count * num_heads * head_dim]
    key_cache, value_cache,
    block_ids,  # [max_blocks_per_seq] int32
    count, position, start, stop,  # query tokens, the first one's position; the keys' positions
    geometry, scale, window, soft_cap,
    scores,  # scratch, [TILE * num_heads * CHUNK]
    offsets,  # scratch, [CHUNK]
    out,  # [count * num_heads * head_dim]
    lse,  # [count * num_heads]
):  # fmt: skip
    """Online softmax over the chunks of one work item."""
    num_rows = count * geometry.num_heads
    row_max = np.full(num_rows, MINUS_INFINITY)
    row_sum = np.zeros(num_rows, np.float32)
    out[:] = ZERO
    for first in range(start, stop, CHUNK):
        num_keys = min(CHUNK, stop - first)
        _locate(block_ids, first, num_keys, geometry, offsets)
        _score(query, key_cache, offsets, num_keys, count, geometry, scores)
        for row in range(num_rows):
            # The keys of this chunk that the row's query may see: low .. high.
            seen = position + row // geometry.num_heads + 1 - first
            high = min(num_keys, seen)
            low = max(0, seen - window) if window > 0 else 0
            _weigh(
                scores[row * CHUNK : row * CHUNK + num_keys], low, high, scale, soft_cap, row, row_max, row_sum,
                out[row * geometry.head_dim : (row + 1) * geometry.head_dim],
            )  # fmt: skip
        _add_values(scores, value_cache, offsets, num_keys, count, geometry, out)
    for row in range(num_rows):
        lse[row] = row_max[row] + np.log(row_sum[row])
        for d in range(row * geometry.head_dim, (row + 1) * geometry.head_dim):
            out[d] /= row_sum[row]


@compiled()
def _locate(block_ids, first, num_keys, geometry, offsets):
    """Follow the block table: offsets[k] is where the row of position first + k starts in the flat caches."""
    row_size = U(geometry.num_kv_heads * geometry.head_dim)
    block_size = U(geometry.block_size)
    for k in range(num_keys):
        position = U(first + k)
        offsets[k] = (U(block_ids[position // block_size]) * block_size + position % block_size) * row_size


@compiled()
def _score(query, key_cache, offsets, num_keys, count, geometry, scores):
    """scores[row, k] = query[row] . key[k], four keys to each reading of the query."""
    num_heads, head_dim = U(geometry.num_heads), U(geometry.head_dim)
    group = num_heads // U(geometry.num_kv_heads)
    fours = num_keys // 4 * 4
    for k in range(0, fours, 4):
        for row in range(U(count) * num_heads):
            head = row % num_heads // group * head_dim
            q = row * head_dim
            k0, k1, k2, k3 = _four(offsets, k, head)
            s0 = s1 = s2 = s3 = ZERO
            for d in range(head_dim):
                x = query[q + d]
                s0 += x * widen(key_cache[k0 + d])
                s1 += x * widen(key_cache[k1 + d])
                s2 += x * widen(key_cache[k2 + d])
                s3 += x * widen(key_cache[k3 + d])
            at = row * U(CHUNK) + U(k)
            scores[at], scores[at + U(1)], scores[at + U(2)], scores[at + U(3)] = s0, s1, s2, s3
    for k in range(fours, num_keys):
        for row in range(U(count) * num_heads):
            q, k0 = row * head_dim, offsets[k] + row % num_heads // group * head_dim
            s0 = ZERO
            for d in range(head_dim):
                s0 += query[q + d] * widen(key_cache[k0 + d])
            scores[row * U(CHUNK) + U(k)] = s0


@compiled()
def _add_values(weights, value_cache, offsets, num_keys, count, geometry, out):
    """out[row] += weights[row, k] * value[k], four values to each pass over the output row."""
    num_heads, head_dim = U(geometry.num_heads), U(geometry.head_dim)
    group = num_heads // U(geometry.num_kv_heads)
    fours = num_keys // 4 * 4
    for k in range(0, fours, 4):
        for row in range(U(count) * num_heads):
            head = row % num_heads // group * head_dim
            o = row * head_dim
            v0, v1, v2, v3 = _four(offsets, k, head)
            at = row * U(CHUNK) + U(k)
            w0, w1, w2, w3 = weights[at], weights[at + U(1)], weights[at + U(2)], weights[at + U(3)]
            for d in range(head_dim):
                out[o + d] += (
                    w0 * widen(value_cache[v0 + d]) + w1 * widen(value_cache[v1 + d])
                    + w2 * widen(value_cache[v2 + d]) + w3 * widen(value_cache[v3 + d])
                )  # fmt: skip
    for k in range(fours, num_keys):
        for row in range(U(count) * num_heads):
            o, v0 = row * head_dim, offsets[k] + row % num_heads // group * head_dim
            w0 = weights[row * U(CHUNK) + U(k)]
            for d in range(head_dim):
                out[o + d] += w0 * widen(value_cache[v0 + d])


@numba.njit(inline="always")
def _four(offsets, k, head):
    """Where head `head` of the four rows from k on starts."""
    return offsets[k] + head, offsets[k + 1] + head, offsets[k + 2] + head, offsets[k + 3] + head


@compiled()
def _weigh(scores, low, high, scale, soft_cap, row, row_max, row_sum, out):
    """Turn one row's scores into softmax weights, and bring what it summed before to the new maximum."""
    for k in range(low, high):
        scores[k] *= scale
    if soft_cap > ZERO:
        for k in range(low, high):
            scores[k] = soft_cap * (ONE - TWO / (ONE + exponential(TWO * scores[k] / soft_cap)))
    maximum = row_max[row]
    for k in range(low, high):
        maximum = max(maximum, scores[k])
    total = ZERO
    for k in range(low, high):
        scores[k] = exponential(scores[k] - maximum)
        total += scores[k]
    scores[:low] = ZERO
    scores[max(low, high) :] = ZERO
    if row_sum[row] > ZERO and maximum > row_max[row]:
        shrink = exponential(row_max[row] - maximum)
        row_sum[row] *= shrink
        for d in range(len(out)):
            out[d] *= shrink
    row_sum[row] += total
    row_max[row] = maximum


@compiled()
def _merge(partial_out, partial_lse, count, geometry, out, lse):
    """Weigh the partial results of one token by their share of the whole softmax."""
    num_heads, head_dim = geometry.num_heads, geometry.head_dim
    for head in range(num_heads):
        maximum = MINUS_INFINITY
        for part in range(count):
            maximum = max(maximum, partial_lse[part * num_heads + head])
        total = ZERO
        for part in range(count):
            total += exponential(partial_lse[part * num_heads + head] - maximum)
        lse[head] = maximum + np.log(total)
        for part in range(count):
            share = exponential(partial_lse[part * num_heads + head] - lse[head])
            for d in range(head_dim):
                out[head * head_dim + d] += share * partial_out[(part * num_heads + head) * head_dim + d]
