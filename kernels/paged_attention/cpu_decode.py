"""Attention of tokens that decode, on the CPU: plan the work, share it among threads, attend, merge.

A *work item* is the token of one sequence against SPLIT_SIZE of its keys, for all heads at once, so that the cache is
read in memory order and each row only once. Splitting over keys keeps all cores busy on a single long sequence; the
partial results are merged by their log-sum-exp (flash-decoding). The split depends on the sequence alone, so its batch
mates never change a bit of its result.

Offsets into the flat caches are unsigned: a signed index would cost the inner loops a test for negative values.
"""

from math import inf

import numba
import numpy as np
from numba import prange
from numba.core import types
from numba.extending import overload

from kernels.numba_intrinsics import INNER, compiled, exponential, fetch_add, pack_bf16_pair, prefetch, widen
from kernels.paged_attention.cpu_batch import U, capped
from kernels.paged_attention.cpu_decode_avx512 import (
    CHUNK,
    HEAD_DIM,
    add_values_in_registers,
    has_wide_registers,
    multiplies_bfloat16,
    score_in_registers,
)

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

SERIAL_KEYS = 256
"""A batch of at most so many keys is attended by one thread: waking the others would take longer."""
SPLIT_SIZE = 2 * CHUNK
"""The most keys of a work item."""
NO_SPLIT = -1
"""In place of a split's number: the item holds all keys of its token, so there is nothing to merge."""

MINUS_INFINITY = np.float32(-inf)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@compiled(parallel=True)
def attend_decode(batch, sizes, softmax, num_threads):
    """Attend the sequences with one query token.

    Rows of `out` and `lse` of other sequences are left alone.
    """
    items, splits, num_parts = _plan_work(batch.seq_lens, batch.query_start_loc, softmax.window)
    part_out = np.empty(U(num_parts) * sizes.num_heads * sizes.head_dim, np.float32)
    part_lse = np.empty(U(num_parts) * sizes.num_heads, np.float32)
    num_claimed = np.zeros(1, np.int64)
    # The others need not be woken for little work.
    if len(items) == 1 or np.sum(batch.seq_lens) <= SERIAL_KEYS:
        _run_worker(batch, sizes, softmax, items, splits, num_claimed, part_out, part_lse)
    else:
        for _ in prange(min(num_threads, len(items))):
            _run_worker(batch, sizes, softmax, items, splits, num_claimed, part_out, part_lse)


@compiled(**INNER)
def _run_worker(
    batch,
    sizes,
    softmax,
    items,  # [num_items, 6]
    splits,  # [num_splits * 3]
    num_claimed,  # [1] how many items the threads have claimed
    part_out,  # [num_parts * num_heads * head_dim]
    part_lse,  # [num_parts * num_heads]
):
    """One thread's share: the next item whenever it is free, since items differ in length and cores in speed.

    It claims one ahead, whose first keys are fetched while it ends the one before.
    """
    query, key_cache, value_cache, block_table, _, _, out, lse = batch
    num_heads, _, head_dim, _ = sizes
    width = num_heads * head_dim
    query_pairs = np.empty(width // U(2), np.uint32)
    scores = np.empty(num_heads * U(CHUNK), np.float32)
    weights = np.empty(num_heads * U(CHUNK // 2), np.uint32)
    offsets = np.empty(SPLIT_SIZE + CHUNK, np.uintp)
    i, following = fetch_add(num_claimed, 0, 1), fetch_add(num_claimed, 0, 1)
    if i < len(items):
        _prefetch_first_keys(key_cache, block_table, items, i, sizes, offsets)
    while i < len(items):
        token, start, stop = U(items[i, 1]), items[i, 2], items[i, 3]
        split, part = items[i, 4], U(items[i, 5])
        into_out, into_lse, row = (out, lse, token) if split == NO_SPLIT else (part_out, part_lse, part)
        _gather_offsets(block_table, items, i, following, sizes, offsets)
        _attend_item(
            query[token * width : (token + U(1)) * width], query_pairs, key_cache, value_cache,
            offsets, stop - start, sizes, softmax, scores, weights,
            into_out[row * width : (row + U(1)) * width],
            into_lse[row * num_heads : (row + U(1)) * num_heads],
        )  # fmt: skip
        # Whoever finishes the last part of a token merges them all.
        if split != NO_SPLIT and fetch_add(splits, 3 * split, -1) == 1:
            first, parts = U(splits[3 * split + 1]), U(splits[3 * split + 2])
            _merge(
                part_out[first * width : (first + parts) * width],
                part_lse[first * num_heads : (first + parts) * num_heads], parts, sizes,
                out[token * width : (token + U(1)) * width],
                lse[token * num_heads : (token + U(1)) * num_heads],
            )  # fmt: skip
        i, following = following, fetch_add(num_claimed, 0, 1)


@compiled(**INNER)
def _plan_work(seq_lens, query_start_loc, window):
    """Cut the batch into work items, and list the tokens whose parts must be merged.

    items  [num_items, 6]: sequence, token, first key, end of keys, split, part
    splits [num_splits * 3]: parts still to come, the first part, how many
    """
    most_items, num_items, num_splits, num_parts = 0, 0, 0, 0
    for s in range(len(seq_lens)):
        most_items += seq_lens[s] // SPLIT_SIZE + 2
    items, splits = np.empty((most_items, 6), np.int64), np.empty(3 * len(seq_lens), np.int64)
    for s in range(len(seq_lens)):
        token, stop = query_start_loc[s], seq_lens[s]
        if query_start_loc[s + 1] - token != 1:
            continue
        start = max(0, stop - window) if window > 0 else 0
        split = num_splits if stop - start > SPLIT_SIZE else NO_SPLIT
        if split != NO_SPLIT:
            parts = (stop - start + SPLIT_SIZE - 1) // SPLIT_SIZE
            splits[3 * split], splits[3 * split + 1], splits[3 * split + 2] = parts, num_parts, parts
            num_splits += 1
        # A padded row of seq_len 0 still gets its one item, without keys, which writes zeros.
        for key in range(start, max(stop, start + 1), SPLIT_SIZE):
            items[num_items, 0], items[num_items, 1] = s, token
            items[num_items, 2], items[num_items, 3] = key, min(key + SPLIT_SIZE, stop)
            items[num_items, 4], items[num_items, 5] = split, num_parts
            num_items += 1
            num_parts += split != NO_SPLIT
    return items[:num_items], splits, num_parts


@compiled(**INNER)
def _attend_item(
    query,  # [num_heads * head_dim]
    query_pairs,  # scratch, [num_heads * head_dim / 2]
    key_cache,
    value_cache,
    offsets,  # [SPLIT_SIZE + CHUNK] where each key's row starts
    num_keys,
    sizes,
    softmax,
    scores,  # scratch, [num_heads * CHUNK]
    weights,  # scratch, [num_heads * CHUNK / 2]
    out,  # [num_heads * head_dim]
    lse,  # [num_heads]
):
    """Online softmax over the chunks of one work item."""
    num_heads, _, head_dim, _ = sizes
    row_max = np.full(num_heads, MINUS_INFINITY)
    row_sum = np.zeros(num_heads, np.float32)
    for d in range(len(out)):
        out[d] = ZERO
    bits = query.view(np.uint32)
    for pair in range(len(query_pairs)):
        query_pairs[pair] = pack_bf16_pair(bits[2 * pair], bits[2 * pair + 1])
    for first in range(0, num_keys, CHUNK):
        now = min(CHUNK, num_keys - first)
        _score_keys(query, query_pairs, key_cache, value_cache, offsets, U(first), now, sizes, scores)
        for row in range(num_heads):
            _online_softmax_update(scores, U(now), softmax, row, head_dim, row_max, row_sum, out)
        _sum_values(scores, weights, value_cache, key_cache, offsets, U(first), now, sizes, out)
    for row in range(num_heads):
        total = row_sum[row] if row_sum[row] > ZERO else ONE
        lse[row] = row_max[row] + np.log(total)
        for d in range(row * head_dim, (row + U(1)) * head_dim):
            out[d] /= total


@compiled(**INNER)
def _gather_offsets(block_table, items, i, following, sizes, offsets):
    """Where the rows of an item's keys start in the flat caches, then those of the first CHUNK of the item after it.

        |  keys of item i  | its last key again |  first keys of `following`  |
        0              num_keys     a whole number of CHUNKs               + CHUNK

    Those of `following` are fetched while item i ends. What is past the last key is read, and never counted.
    """
    num_keys = items[i, 3] - items[i, 2]
    end = (num_keys + CHUNK - 1) // CHUNK * CHUNK
    _follow_table(block_table, items, i, sizes, offsets[:end])
    _follow_table(block_table, items, following if following < len(items) else i, sizes, offsets[end : end + CHUNK])


@compiled(**INNER)
def _follow_table(block_table, items, i, sizes, offsets):
    """offsets[k]: where the row of the item's k-th key starts; of its last key, past the end."""
    _, num_kv_heads, head_dim, block_size = sizes
    row_size = num_kv_heads * head_dim
    sequence, first, stop = items[i, 0], items[i, 2], items[i, 3]
    index, offset = U(first) // block_size, U(first) % block_size
    for k in range(len(offsets)):
        offsets[k] = (U(block_table[sequence, index]) * block_size + offset) * row_size
        if first + k + 1 < stop:
            offset += U(1)
            if offset == block_size:
                index, offset = index + U(1), U(0)


@compiled(**INNER)
def _prefetch_first_keys(key_cache, block_table, items, i, sizes, offsets):
    """Prefetch the first keys of a thread's first item; each later item's are prefetched by the item before it."""
    _follow_table(block_table, items, i, sizes, offsets[:CHUNK])
    for k in range(CHUNK):
        _prefetch_row(key_cache, offsets[k], sizes[1] * sizes[2])


def _score_keys(query, query_pairs, key_cache, value_cache, offsets, start, num_keys, sizes, scores):
    """scores[head, k] = query[head] . key[start + k]; fetches the values meanwhile."""


@overload(_score_keys, jit_options=INNER)
def _choose_score_keys(query, query_pairs, key_cache, value_cache, offsets, start, num_keys, sizes, scores):
    """When it is compiled, not when it runs: a processor may lack the instructions."""

    def in_bf16_pairs(query, query_pairs, key_cache, value_cache, offsets, start, num_keys, sizes, scores):
        if sizes[2] == U(HEAD_DIM):
            score_in_registers(query_pairs, 32, key_cache, value_cache, offsets, start, num_keys, sizes, scores)
        else:
            _score(query, key_cache, value_cache, offsets, start, num_keys, sizes, scores)

    def in_float32(query, query_pairs, key_cache, value_cache, offsets, start, num_keys, sizes, scores):
        if sizes[2] == U(HEAD_DIM):
            score_in_registers(query, 64, key_cache, value_cache, offsets, start, num_keys, sizes, scores)
        else:
            _score(query, key_cache, value_cache, offsets, start, num_keys, sizes, scores)

    def scalar_loop(query, query_pairs, key_cache, value_cache, offsets, start, num_keys, sizes, scores):
        _score(query, key_cache, value_cache, offsets, start, num_keys, sizes, scores)

    return _select(key_cache, in_bf16_pairs, in_float32, scalar_loop)


def _sum_values(scores, weights, value_cache, key_cache, offsets, start, num_keys, sizes, out):
    """out[head] += scores[head, k] * value[start + k], the scores being weights by now; fetches the next keys."""


@overload(_sum_values, jit_options=INNER)
def _choose_sum_values(scores, weights, value_cache, key_cache, offsets, start, num_keys, sizes, out):
    def in_bf16_pairs(scores, weights, value_cache, key_cache, offsets, start, num_keys, sizes, out):
        if sizes[2] == U(HEAD_DIM):
            bits, steps = scores.view(np.uint32), U((num_keys + 1) // 2)
            for pair in range(sizes[0] * U(CHUNK // 2)):
                weights[pair] = pack_bf16_pair(bits[U(2) * pair], bits[U(2) * pair + U(1)])
            add_values_in_registers(weights, U(CHUNK // 2), steps, value_cache, key_cache, offsets, start, sizes, out)
        else:
            _add_values(scores, value_cache, key_cache, offsets, start, num_keys, sizes, out)

    def in_float32(scores, weights, value_cache, key_cache, offsets, start, num_keys, sizes, out):
        if sizes[2] == U(HEAD_DIM):
            steps = U(num_keys)
            add_values_in_registers(scores, U(CHUNK), steps, value_cache, key_cache, offsets, start, sizes, out)
        else:
            _add_values(scores, value_cache, key_cache, offsets, start, num_keys, sizes, out)

    def scalar_loop(scores, weights, value_cache, key_cache, offsets, start, num_keys, sizes, out):
        _add_values(scores, value_cache, key_cache, offsets, start, num_keys, sizes, out)

    return _select(value_cache, in_bf16_pairs, in_float32, scalar_loop)


def _select(cache, in_bf16_pairs, in_float32, scalar_loop):
    if not has_wide_registers():
        return scalar_loop
    return in_bf16_pairs if cache.dtype == types.uint16 and multiplies_bfloat16() else in_float32


@compiled(**INNER)
def _score(query, key_cache, value_cache, offsets, start, num_keys, sizes, scores):
    """Four keys to each reading of the query."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, row_size = num_heads // num_kv_heads, num_kv_heads * head_dim
    for k in range(0, num_keys, 4):
        for now in range(start + U(k), start + U(k) + U(4)):
            _prefetch_row(value_cache, offsets[now], row_size)
        for row in range(num_heads):
            k0, k1, k2, k3 = _offsets_of_four(offsets, start + U(k), row // group * head_dim)
            q, at = row * head_dim, row * U(CHUNK) + U(k)
            s0 = s1 = s2 = s3 = ZERO
            for d in range(head_dim):
                x = query[q + d]
                s0 += x * widen(key_cache[k0 + d])
                s1 += x * widen(key_cache[k1 + d])
                s2 += x * widen(key_cache[k2 + d])
                s3 += x * widen(key_cache[k3 + d])
            scores[at], scores[at + U(1)], scores[at + U(2)], scores[at + U(3)] = s0, s1, s2, s3


@compiled(**INNER)
def _add_values(weights, value_cache, key_cache, offsets, start, num_keys, sizes, out):
    """Four values to each pass over the output row."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, row_size = num_heads // num_kv_heads, num_kv_heads * head_dim
    for k in range(0, num_keys, 4):
        for later in range(start + U(CHUNK + k), start + U(CHUNK + k + 4)):
            _prefetch_row(key_cache, offsets[later], row_size)
        for row in range(num_heads):
            v0, v1, v2, v3 = _offsets_of_four(offsets, start + U(k), row // group * head_dim)
            o, at = row * head_dim, row * U(CHUNK) + U(k)
            w0, w1, w2, w3 = weights[at], weights[at + U(1)], weights[at + U(2)], weights[at + U(3)]
            for d in range(head_dim):
                out[o + d] += (
                    w0 * widen(value_cache[v0 + d]) + w1 * widen(value_cache[v1 + d])
                    + w2 * widen(value_cache[v2 + d]) + w3 * widen(value_cache[v3 + d])
                )  # fmt: skip


@numba.njit(inline="always")
def _offsets_of_four(offsets, k, head):
    """Where one head of the four rows from k on starts."""
    return offsets[k] + head, offsets[k + U(1)] + head, offsets[k + U(2)] + head, offsets[k + U(3)] + head


@numba.njit(inline="always")
def _prefetch_row(cache, offset, row_size):
    """Start bringing one row of the cache near: blocks lie anywhere, so the processor cannot guess the next one."""
    line = U(64 // cache.itemsize)
    for element in range(offset, offset + row_size, line):
        prefetch(cache, element)


@compiled(**INNER)
def _online_softmax_update(scores, num_keys, softmax, row, head_dim, row_max, row_sum, out):
    """Turn one row's scores into softmax weights, and bring what it summed before to the new maximum.

    The loops run over a whole chunk, however few its keys: a known length makes faster ones.
    """
    start = row * U(CHUNK)
    for k in range(start + num_keys, start + U(CHUNK)):
        scores[k] = MINUS_INFINITY
    for k in range(start, start + U(CHUNK)):
        scores[k] *= softmax.scale
    if softmax.soft_cap > ZERO:
        for k in range(start, start + num_keys):
            scores[k] = capped(scores[k], softmax.soft_cap)
    maximum = row_max[row]
    for k in range(start, start + U(CHUNK)):
        maximum = max(maximum, scores[k])
    total = ZERO
    for k in range(start, start + U(CHUNK)):
        scores[k] = exponential(scores[k] - maximum)
        total += scores[k]
    if row_sum[row] > ZERO and maximum > row_max[row]:
        shrink = exponential(row_max[row] - maximum)
        row_sum[row] *= shrink
        for d in range(row * head_dim, (row + U(1)) * head_dim):
            out[d] *= shrink
    row_sum[row] += total
    row_max[row] = maximum


@compiled(**INNER)
def _merge(part_out, part_lse, parts, sizes, out, lse):
    """Weigh the partial results of one token by their share of the whole softmax."""
    num_heads, head_dim = sizes[0], sizes[2]
    for d in range(len(out)):
        out[d] = ZERO
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
