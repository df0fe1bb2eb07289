"""The loops behind paged_attention for the CPU: plan the work, share it among threads, attend, merge.

Offsets into the flat caches are unsigned: a signed index would cost the inner loops a test for negative values.
All functions of one dispatch live in this file, because Numba's cache on disk notices edits here and nowhere else.
"""

from math import inf

import numba
import numpy as np
from numba import prange

from kernels.numba_math import compiled, exponential, fetch_add, prefetch, widen
from kernels.paged_attention.cpu_vectors import add_value_rows, has_wide_registers, score_rows

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

CHUNK = 128
"""Keys scored at a time: their scores stay in the first-level cache, their keys and values in the second."""
FEW_KEYS = 256
"""Of the whole batch: waking the other threads would take longer than attending to them."""
TILE = 4
"""Query tokens that share one reading of the keys in prefill."""
STRIP = 16
"""Keys scored for all heads before the next ones, whose fetch is under way meanwhile."""
AHEAD = 8
"""Keys between the one in work and the one being fetched: enough to hide a trip to memory."""
WHOLE = -1
"""In place of a split's number: an item that sees all keys of its tokens."""

WIDE_REGISTERS = has_wide_registers()

U = np.uintp
MINUS_INFINITY = np.float32(-inf)
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)


@compiled(parallel=True)
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
    sizes = (U(num_heads), U(num_kv_heads), U(head_dim), U(block_size))
    items, splits, num_parts = _plan(seq_lens, query_start_loc, window)
    width = num_heads * head_dim
    part_out = np.empty(num_parts * width, np.float32)
    part_lse = np.empty(num_parts * num_heads, np.float32)
    taken = np.zeros(1, np.int64)
    unfinished = splits[:, 2].copy()
    # The others need not be woken for little work.
    if len(items) == 1 or np.sum(seq_lens) <= FEW_KEYS:
        _work(
            query, key_cache, value_cache, block_table, sizes, scale, window, soft_cap, items, splits,
            taken, unfinished, part_out, part_lse, out, lse,
        )  # fmt: skip
    else:
        for _ in prange(min(num_threads, len(items))):
            _work(
                query, key_cache, value_cache, block_table, sizes, scale, window, soft_cap, items, splits,
                taken, unfinished, part_out, part_lse, out, lse,
            )  # fmt: skip


@compiled()
def _work(
    query, key_cache, value_cache, block_table, sizes, scale, window, soft_cap,
    items,  # [num_items, 8]
    splits,  # [num_splits, 3]
    taken,  # [1] how many items the threads have begun
    unfinished,  # [num_splits] how many parts of a token are still to come
    part_out,  # [num_parts * num_heads * head_dim]
    part_lse,  # [num_parts * num_heads]
    out, lse,
):  # fmt: skip
    """One thread's share: the next item whenever it is free, since items differ in length and cores in speed."""
    num_heads, width = np.int64(sizes[0]), np.int64(sizes[0] * sizes[2])
    scores = np.empty(TILE * num_heads * CHUNK, np.float32)
    offsets = np.empty(CHUNK, np.uintp)
    i = fetch_add(taken, 0, 1)
    while i < len(items):
        s, token, count, position, start, stop, split, part = items[i]
        into_out, into_lse, row = (out, lse, token) if split == WHOLE else (part_out, part_lse, part)
        _attend_item(
            query[token * width : (token + count) * width], key_cache, value_cache, block_table[s],
            count, position, start, stop, sizes, scale, window, soft_cap, scores, offsets,
            into_out[row * width : (row + count) * width], into_lse[row * num_heads : (row + count) * num_heads],
        )  # fmt: skip
        # Whoever finishes the last part of a token merges them all.
        if split != WHOLE and fetch_add(unfinished, split, -1) == 1:
            _, first, parts = splits[split]
            _merge(
                part_out[first * width : (first + parts) * width],
                part_lse[first * num_heads : (first + parts) * num_heads], parts, sizes,
                out[token * width : (token + 1) * width], lse[token * num_heads : (token + 1) * num_heads],
            )  # fmt: skip
        i = fetch_add(taken, 0, 1)


@compiled()
def _plan(seq_lens, query_start_loc, window):
    """Cut the batch into work items, and list the tokens whose parts must be merged.

    items  [num_items, 8]: sequence, first token, tokens, position of the first, first key, end of keys, split, part
    splits [num_splits, 3]: token, its first part, how many
    """
    num_seqs = len(seq_lens)
    most_items, most_splits = 0, 0
    for s in range(num_seqs):
        query_len = query_start_loc[s + 1] - query_start_loc[s]
        most_items += query_len // TILE + 1 + (seq_lens[s] // CHUNK + 1 if query_len == 1 else 0)
        most_splits += query_len == 1
    items, splits = np.empty((most_items, 8), np.int64), np.empty((most_splits, 3), np.int64)
    num_items, num_splits, num_parts = 0, 0, 0
    for s in range(num_seqs):
        begin, end, seq_len = query_start_loc[s], query_start_loc[s + 1], seq_lens[s]
        for token in range(begin, end, TILE):
            count = min(TILE, end - token)
            position = seq_len - (end - token)
            start, stop = max(0, position - window + 1) if window > 0 else 0, position + count
            split, share = WHOLE, max(1, stop - start)
            if end - begin == 1 and stop - start > CHUNK:
                split, share = num_splits, CHUNK
                splits[num_splits] = token, num_parts, (stop - start + CHUNK - 1) // CHUNK
                num_splits += 1
            # A padded row of seq_len 0 still gets its one item, without keys, which writes zeros.
            for key in range(start, max(stop, start + 1), share):
                items[num_items] = s, token, count, position, key, min(key + share, stop), split, num_parts
                num_items += 1
                num_parts += split != WHOLE
    return items[:num_items], splits[:num_splits], num_parts


@compiled()
def _attend_item(
    query,  # [count * num_heads * head_dim]
    key_cache,
    value_cache,
    block_ids,  # [max_blocks_per_seq] int32
    count,
    position,  # of the first query token
    start,
    stop,  # the keys' positions: start .. stop - 1
    sizes,  # num_heads, num_kv_heads, head_dim, block_size
    scale,
    window,
    soft_cap,
    scores,  # scratch, [TILE * num_heads * CHUNK]
    offsets,  # scratch, [CHUNK]
    out,  # [count * num_heads * head_dim]
    lse,  # [count * num_heads]
):
    """Online softmax over the chunks of one work item."""
    num_heads, head_dim = sizes[0], sizes[2]
    in_registers = WIDE_REGISTERS and head_dim == U(64)
    num_rows = count * num_heads
    row_max = np.full(num_rows, MINUS_INFINITY)
    row_sum = np.zeros(num_rows, np.float32)
    out[:] = ZERO
    for first in range(start, stop, CHUNK):
        num_keys = min(CHUNK, stop - first)
        _locate(block_ids, first, num_keys, sizes, offsets)
        if in_registers:
            _score_in_registers(query, key_cache, value_cache, offsets, num_keys, count, sizes, scores)
        else:
            _score(query, key_cache, value_cache, offsets, num_keys, count, sizes, scores)
        for row in range(num_rows):
            # The keys of this chunk that the row's query may see: low .. high - 1.
            seen = position + np.int64(row // num_heads) + 1 - first
            low, high = max(0, seen - window) if window > 0 else 0, min(num_keys, seen)
            _weigh(
                scores[row * CHUNK : row * CHUNK + num_keys], low, high, scale, soft_cap, row, row_max, row_sum,
                out[row * head_dim : (row + 1) * head_dim],
            )  # fmt: skip
        if in_registers:
            _add_values_in_registers(scores, value_cache, offsets, num_keys, count, sizes, out)
        else:
            _add_values(scores, value_cache, offsets, num_keys, count, sizes, out)
    for row in range(num_rows):
        total = row_sum[row] if row_sum[row] > ZERO else ONE
        lse[row] = row_max[row] + np.log(total)
        for d in range(row * head_dim, (row + 1) * head_dim):
            out[d] /= total


@compiled()
def _locate(block_ids, first, num_keys, sizes, offsets):
    """Follow the block table: offsets[k] is where the row of position first + k starts in the flat caches."""
    _, num_kv_heads, head_dim, block_size = sizes
    row_size = num_kv_heads * head_dim
    index, offset = U(first) // block_size, U(first) % block_size
    for k in range(num_keys):
        offsets[k] = (U(block_ids[index]) * block_size + offset) * row_size
        offset += U(1)
        if offset == block_size:
            index, offset = index + U(1), U(0)


@compiled()
def _score(query, key_cache, value_cache, offsets, num_keys, count, sizes, scores):
    """scores[row, k] = query[row] . key[k], four keys to each reading of the query; fetches the values meanwhile."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, row_size = num_heads // num_kv_heads, num_kv_heads * head_dim
    fours = num_keys // 4 * 4
    for k in range(min(AHEAD, num_keys)):
        _fetch(key_cache, offsets[k], row_size)
    for k in range(0, fours, 4):
        for ahead in range(k + AHEAD, min(k + AHEAD + 4, num_keys)):
            _fetch(key_cache, offsets[ahead], row_size)
        for now in range(k, k + 4):
            _fetch(value_cache, offsets[now], row_size)
        for kv_head in range(num_kv_heads):
            k0, k1, k2, k3 = _four(offsets, k, kv_head * head_dim)
            for token in range(U(count)):
                for row in range(token * num_heads + kv_head * group, token * num_heads + (kv_head + U(1)) * group):
                    q, at = row * head_dim, row * U(CHUNK) + U(k)
                    s0 = s1 = s2 = s3 = ZERO
                    for d in range(head_dim):
                        x = query[q + d]
                        s0 += x * widen(key_cache[k0 + d])
                        s1 += x * widen(key_cache[k1 + d])
                        s2 += x * widen(key_cache[k2 + d])
                        s3 += x * widen(key_cache[k3 + d])
                    scores[at], scores[at + U(1)], scores[at + U(2)], scores[at + U(3)] = s0, s1, s2, s3
    for k in range(fours, num_keys):
        _fetch(value_cache, offsets[k], row_size)
        for row in range(U(count) * num_heads):
            q, k0 = row * head_dim, offsets[k] + row % num_heads // group * head_dim
            s0 = ZERO
            for d in range(head_dim):
                s0 += query[q + d] * widen(key_cache[k0 + d])
            scores[row * U(CHUNK) + U(k)] = s0


@compiled()
def _add_values(weights, value_cache, offsets, num_keys, count, sizes, out):
    """out[row] += weights[row, k] * value[k], four values to each pass over the output row."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group = num_heads // num_kv_heads
    fours = num_keys // 4 * 4
    for k in range(0, fours, 4):
        for kv_head in range(num_kv_heads):
            v0, v1, v2, v3 = _four(offsets, k, kv_head * head_dim)
            for token in range(U(count)):
                for row in range(token * num_heads + kv_head * group, token * num_heads + (kv_head + U(1)) * group):
                    o, at = row * head_dim, row * U(CHUNK) + U(k)
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


@compiled()
def _score_in_registers(query, key_cache, value_cache, offsets, num_keys, count, sizes, scores):
    """`_score` for a head_dim of 64."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, row_size = num_heads // num_kv_heads, num_kv_heads * head_dim
    for first in range(U(0), U(num_keys), U(STRIP)):
        end = min(first + U(STRIP), U(num_keys))
        for k in range(first, end):
            _fetch(value_cache, offsets[k], row_size)
        for k in range(end, min(end + U(STRIP), U(num_keys))):
            _fetch(key_cache, offsets[k], row_size)
        for token in range(U(count)):
            for kv_head in range(num_kv_heads):
                head, row, left = kv_head * head_dim, token * num_heads + kv_head * group, group
                while left > U(0):
                    q, at = row * head_dim, row * U(CHUNK)
                    if left >= U(4):
                        score_rows(query, q, key_cache, offsets, head, first, end, scores, at, U(CHUNK), 4, 64)
                        row, left = row + U(4), left - U(4)
                    elif left == U(3):
                        score_rows(query, q, key_cache, offsets, head, first, end, scores, at, U(CHUNK), 3, 64)
                        left = U(0)
                    elif left == U(2):
                        score_rows(query, q, key_cache, offsets, head, first, end, scores, at, U(CHUNK), 2, 64)
                        left = U(0)
                    else:
                        score_rows(query, q, key_cache, offsets, head, first, end, scores, at, U(CHUNK), 1, 64)
                        left = U(0)


@compiled()
def _add_values_in_registers(weights, value_cache, offsets, num_keys, count, sizes, out):
    """`_add_values` for a head_dim of 64."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, keys = num_heads // num_kv_heads, U(num_keys)
    for token in range(U(count)):
        for kv_head in range(num_kv_heads):
            head, row, left = kv_head * head_dim, token * num_heads + kv_head * group, group
            while left > U(0):
                o, at = row * head_dim, row * U(CHUNK)
                if left >= U(4):
                    add_value_rows(weights, at, U(CHUNK), value_cache, offsets, head, keys, out, o, 4, 64)
                    row, left = row + U(4), left - U(4)
                elif left == U(3):
                    add_value_rows(weights, at, U(CHUNK), value_cache, offsets, head, keys, out, o, 3, 64)
                    left = U(0)
                elif left == U(2):
                    add_value_rows(weights, at, U(CHUNK), value_cache, offsets, head, keys, out, o, 2, 64)
                    left = U(0)
                else:
                    add_value_rows(weights, at, U(CHUNK), value_cache, offsets, head, keys, out, o, 1, 64)
                    left = U(0)


@numba.njit(inline="always")
def _four(offsets, k, head):
    """Where one head of the four rows from k on starts."""
    return offsets[k] + head, offsets[k + 1] + head, offsets[k + 2] + head, offsets[k + 3] + head


@numba.njit(inline="always")
def _fetch(cache, offset, row_size):
    """Start bringing one row of the cache near: blocks lie anywhere, so the processor cannot guess the next one."""
    line = U(64 // cache.itemsize)
    for element in range(offset, offset + row_size, line):
        prefetch(cache, element)


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
def _merge(part_out, part_lse, parts, sizes, out, lse):
    """Weigh the partial results of one token by their share of the whole softmax."""
    num_heads, head_dim = sizes[0], sizes[2]
    out[:] = ZERO
    for head in range(num_heads):
        maximum = MINUS_INFINITY
        for part in range(parts):
            maximum = max(maximum, part_lse[part * num_heads + head])
        total = ZERO
        for part in range(parts):
            total += exponential(part_lse[part * num_heads + head] - maximum)
        lse[head] = maximum + np.log(total)
        for part in range(parts):
            share = exponential(part_lse[part * num_heads + head] - lse[head])
            source = (part * num_heads + head) * head_dim
            for d in range(head_dim):
                out[head * head_dim + d] += share * part_out[source + d]
