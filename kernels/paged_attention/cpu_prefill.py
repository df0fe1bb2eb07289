"""Attention of prefill and chunked prefill on the CPU: panels of query rows against tiles of keys.

A *row* is one query head of one token, counted over the tokens of a sequence and the heads that share a KV head: row
r is token r // group, head r % group. A *work item* is a band of rows, PANELS panels of them, against all keys they
see: each tile of keys and values is picked up once, through the block table, and serves the whole band.

    rows of a KV head          tiles of KEYS keys, counted from position 0
    band  panel  64 rows       |=====|=====|=====|==\\  |
          panel  64 rows       |=====|=====|=====|====\\|      \\ is where the causal mask cuts
    band  panel ...            |=====|=====|=====|=====|==\\

Tiles begin at multiples of KEYS and a row has lanes of its own, so a row's result depends neither on its batch mates
nor on how its prompt was cut into chunks, to the last bit. Sums are float32; with bfloat16 keys and values the
products are of bfloat16 pairs, where the processor has them (cpu_prefill_gemm.py).
"""

from math import inf
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import prange

from kernels.numba_intrinsics import INNER, compiled, exponential, fetch_add
from kernels.paged_attention.cpu_batch import U, capped
from kernels.paged_attention.cpu_prefill_gemm import LANES, ROWS, TILE_ROWS, VECTORS, add_panel, score_panel
from kernels.paged_attention.cpu_prefill_tiles import (
    KEYS,
    fill,
    load_keys,
    load_values,
    num_steps,
    operand_type,
    pack_weights,
    transpose_rows,
)

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

PANELS = 2

MASKED = np.float32(-1e30)
"""A hidden score, and the maximum of no scores: finite, since infinities subtracted give NaN."""
MINUS_INFINITY = np.float32(-inf)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


class Band(NamedTuple):
    """One thread's working memory. Panels and sums keep PANELS of what is described here, one after the other.

    A step is an element of head_dim, or of a tile's values and weights a key; in bfloat16 pairs it is two.
    """

    panels: Any  # [steps, ROWS] float32, or uint32 pairs
    positions: Any  # [ROWS] int32, of each row's token
    keys: Any  # [KEYS, steps] like the panels
    values: Any  # [steps, padded_dim] like the panels
    scores: Any  # [KEYS, ROWS] float32, of one panel: scores and then weights
    packed: Any  # [steps, ROWS] uint32: its weights, rounded to bfloat16 and paired
    shrink: Any  # [ROWS] what sums so far are worth beside the new maximum
    sums: Any  # [padded_dim, ROWS] float32
    maxima: Any  # [ROWS] float32
    totals: Any  # [ROWS] float32


@compiled(parallel=True)
def attend_prefill(batch, sizes, softmax, least_tokens, num_threads):
    """Attend the sequences with `least_tokens` query tokens or more (1 for all, 2 where attend_decode takes the rest).

    Rows of `out` and `lse` of other sequences are left alone.
    """
    items = _plan_work(batch.query_start_loc, sizes, least_tokens)
    num_claimed = np.zeros(1, np.int64)
    for _ in prange(min(num_threads, len(items))):
        _run_worker(batch, sizes, softmax, items, num_claimed)


@numba.njit(inline="always")
def _plan_work(query_start_loc, sizes, least_tokens):
    """The bands: [num_items, 3] of sequence, KV head, first row. Late ones see most keys, so they come first."""
    group, num_items = sizes.num_heads // sizes.num_kv_heads, 0
    for s in range(len(query_start_loc) - 1):
        num_rows = (query_start_loc[s + 1] - query_start_loc[s]) * group
        num_items += (num_rows + PANELS * ROWS - 1) // (PANELS * ROWS) * sizes.num_kv_heads
    items, num_items = np.empty((num_items, 3), np.int64), 0
    for s in range(len(query_start_loc) - 1):
        query_len = query_start_loc[s + 1] - query_start_loc[s]
        if query_len >= least_tokens:
            last = (query_len * group - 1) // (PANELS * ROWS)
            for number in range(last + 1):
                for kv_head in range(np.int64(sizes.num_kv_heads)):
                    items[num_items, 0], items[num_items, 1] = s, kv_head
                    items[num_items, 2] = (last - number) * (PANELS * ROWS)
                    num_items += 1
    return items[:num_items]


@numba.njit(inline="always")
def _run_worker(batch, sizes, softmax, items, num_claimed):
    """One thread's share: the next band whenever it is free, since bands differ in keys and cores in speed."""
    band = _allocate(batch, sizes)
    i = fetch_add(num_claimed, 0, 1)
    while i < len(items):
        s, kv_head, row = items[i, 0], items[i, 1], items[i, 2]
        _attend_band(batch, sizes, softmax, band, s, U(kv_head), row)
        i = fetch_add(num_claimed, 0, 1)


@numba.njit(inline="always")
def _allocate(batch, sizes):
    multiplied, added = operand_type(batch.key_cache), np.float32(0.0)
    steps = num_steps(sizes.head_dim, multiplied)
    padded = (sizes.head_dim + U(TILE_ROWS - 1)) // U(TILE_ROWS) * U(TILE_ROWS)
    return Band(
        panels=_aligned(multiplied, U(PANELS * ROWS) * steps),
        positions=np.zeros(PANELS * ROWS, np.int32),
        keys=_aligned(multiplied, U(KEYS) * steps),
        values=_aligned(multiplied, num_steps(U(KEYS), multiplied) * padded),
        scores=_aligned(added, U(KEYS * ROWS)),
        packed=_aligned(np.uint32(0), U(KEYS // 2 * ROWS)),
        shrink=_aligned(added, U(ROWS)),
        sums=_aligned(added, U(PANELS * ROWS) * padded),
        maxima=_aligned(added, U(PANELS * ROWS)),
        totals=_aligned(added, U(PANELS * ROWS)),
    )


@compiled(**INNER)
def _aligned(like, size):
    """Zeros that begin with a cache line: a register loaded across two of them takes twice as long."""
    room = np.zeros(size + U(16), type(like))
    start = U(-room.ctypes.data % 64) // U(4)
    return room[start : start + size]


@numba.njit(inline="always")
def _attend_band(batch, sizes, softmax, band, s, kv_head, first_row):
    """Online softmax of the rows from `first_row` on over the tiles of keys that they see."""
    group = sizes.num_heads // sizes.num_kv_heads
    begin, end = batch.query_start_loc[s], batch.query_start_loc[s + 1]
    num_rows = min(PANELS * ROWS, (end - begin) * group - first_row)
    _load_queries(batch, sizes, band, begin, batch.seq_lens[s] - end, kv_head, first_row, num_rows)
    fill(band.sums, 0, len(band.sums), ZERO)
    fill(band.totals, 0, len(band.totals), ZERO)
    fill(band.maxima, 0, len(band.maxima), MASKED)
    num_panels = (num_rows + ROWS - 1) // ROWS
    start, stop = 0, np.int64(band.positions[num_rows - 1]) + 1
    if softmax.window > 0:
        start = max(0, band.positions[0] - softmax.window + 1) // KEYS * KEYS
    for first in range(start, stop, KEYS):
        _load_keys_and_values(batch, sizes, band, s, kv_head, first, min(KEYS, stop - first))
        for panel in range(num_panels):
            highest = np.int64(band.positions[(panel + 1) * ROWS - 1])
            if highest >= first:
                is_narrow = num_rows - panel * ROWS <= LANES
                _attend_tile(sizes, softmax, band, panel, is_narrow, first, min(KEYS, highest + 1 - first))
    _store_output(batch, sizes, band, begin, kv_head, first_row, num_rows)


@compiled(**INNER)
def _load_queries(batch, sizes, band, begin, shift, kv_head, first_row, num_rows):
    """Turn the band's rows on their side; those past the last one repeat it, so that all panels are whole."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, panel_size = num_heads // num_kv_heads, U(len(band.panels) // PANELS)
    sources = np.empty(ROWS, np.uintp)
    for panel in range((num_rows + ROWS - 1) // ROWS):
        for r in range(panel * ROWS, (panel + 1) * ROWS):
            row = U(first_row + min(r, num_rows - 1))
            token, head = U(begin) + row // group, kv_head * group + row % group
            band.positions[r] = np.int64(token) + shift
            sources[r - panel * ROWS] = (token * num_heads + head) * head_dim
        rows = U(LANES if num_rows - panel * ROWS <= LANES else ROWS)
        transpose_rows(batch.query, sources, rows, head_dim, band.panels, U(panel) * panel_size)


@compiled(**INNER)
def _load_keys_and_values(batch, sizes, band, s, kv_head, first, num_keys):
    """Follow the block table to the keys and values of positions first, first + 1 ..; what pads the tile is 0."""
    _, num_kv_heads, head_dim, block_size = sizes
    offsets = np.empty(KEYS, np.uintp)
    index, offset = U(first) // block_size, U(first) % block_size
    for k in range(num_keys):
        offsets[k] = ((U(batch.block_table[s, index]) * block_size + offset) * num_kv_heads + kv_head) * head_dim
        offset += U(1)
        if offset == block_size:
            index, offset = index + U(1), U(0)
    padded = (U(num_keys) + U(TILE_ROWS - 1)) // U(TILE_ROWS) * U(TILE_ROWS)
    load_keys(batch.key_cache, offsets, U(num_keys), padded, head_dim, band.keys)
    load_values(batch.value_cache, offsets, U(num_keys), padded, head_dim, band.values)


@compiled(**INNER)
def _attend_tile(sizes, softmax, band, panel, is_narrow, first, num_keys):
    """One panel against one tile.

    Where the first register holds all rows, the products leave the others alone. What lies between the products takes
    all lanes even so: compiled for fewer, LLVM may sum a row's weights in another order.
    """
    panel_size = U(len(band.panels) // PANELS)
    width = panel_size // U(ROWS)
    count = U((num_keys + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS)
    for k in range(U(0), count, U(TILE_ROWS)):
        here, there = U(panel) * panel_size, k * U(ROWS)
        if is_narrow:
            score_panel(band.panels, here, band.keys, k * width, width, band.scores, there, 1)
        else:
            score_panel(band.panels, here, band.keys, k * width, width, band.scores, there, VECTORS)
    row, window = U(panel) * U(ROWS), softmax.window
    _scale_scores(band.scores, count, softmax)
    lowest, highest = np.int64(band.positions[row]), np.int64(band.positions[row + U(ROWS - 1)])
    if first + np.int64(count) - 1 > lowest or (window > 0 and first <= highest - window):
        _apply_mask(band.scores, count, band.positions, row, first, window)
    _online_softmax_update(band.scores, count, band.maxima, band.totals, row, band.shrink)
    weights, steps = pack_weights(band.scores, count, band.packed, band.values)
    padded = U(len(band.sums) // (PANELS * ROWS))
    for d in range(U(0), padded, U(TILE_ROWS)):
        to = (U(panel) * padded + d) * U(ROWS)
        if is_narrow:
            add_panel(weights, band.values, d, padded, steps, band.shrink, band.sums, to, 1)
        else:
            add_panel(weights, band.values, d, padded, steps, band.shrink, band.sums, to, VECTORS)


@compiled(**INNER)
def _scale_scores(scores, count, softmax):
    for i in range(count * U(ROWS)):
        scores[i] *= softmax.scale
    if softmax.soft_cap > ZERO:
        for i in range(count * U(ROWS)):
            scores[i] = capped(scores[i], softmax.soft_cap)


@compiled(**INNER)
def _apply_mask(scores, count, positions, row, first, window):
    """Leave each row the keys up to its own position, and from the window on."""
    reach = np.int32(window if window > 0 else 1 << 30)
    for k in range(count):
        key = np.int32(first + np.int64(k))
        for r in range(U(ROWS)):
            seen = (key <= positions[row + r]) & (key > positions[row + r] - reach)
            at = k * U(ROWS) + r
            scores[at] = scores[at] if seen else MASKED


@compiled(**INNER)
def _online_softmax_update(scores, count, maxima, totals, row, shrink):
    """Turn scores into softmax weights, and see what the sums so far are worth beside the new maxima.

    TILE_ROWS keys at a time, so that a row's maximum and total stay in a register for as many steps.
    """
    for r in range(U(ROWS)):
        shrink[r] = maxima[row + r]
    for k in range(U(0), count, U(TILE_ROWS)):
        for r in range(U(ROWS)):
            maximum = maxima[row + r]
            for at in range(U(TILE_ROWS)):
                maximum = max(maximum, scores[(k + at) * U(ROWS) + r])
            maxima[row + r] = maximum
    for r in range(U(ROWS)):
        shrink[r] = exponential(shrink[r] - maxima[row + r])
        totals[row + r] *= shrink[r]
    for k in range(U(0), count, U(TILE_ROWS)):
        for r in range(U(ROWS)):
            maximum, total = maxima[row + r], totals[row + r]
            for at in range(U(TILE_ROWS)):
                weight = exponential(scores[(k + at) * U(ROWS) + r] - maximum)
                scores[(k + at) * U(ROWS) + r] = weight
                total += weight
            totals[row + r] = total


@compiled(**INNER)
def _store_output(batch, sizes, band, begin, kv_head, first_row, num_rows):
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, panel_size = num_heads // num_kv_heads, U(len(band.sums) // PANELS)
    for r in range(num_rows):
        row = U(first_row + r)
        to = (U(begin) + row // group) * num_heads + kv_head * group + row % group
        total = band.totals[r] if band.totals[r] > ZERO else ONE
        batch.lse[to] = band.maxima[r] + np.log(total) if band.totals[r] > ZERO else MINUS_INFINITY
        factor, source = ONE / total, U(r // ROWS) * panel_size + U(r % ROWS)
        for i in range(head_dim):
            batch.out[to * head_dim + i] = factor * band.sums[source + i * U(ROWS)]
