"""Hits and evictions of the prefix cache for each size of the pool, one request at a time.

By the rules of engine/kv_cache: a request finds the longest run of its first blocks that are cached, takes free blocks
for the rest, and gives them back last block first; a free block is taken from those that hold nothing, then from those
that were given back longest ago. So what a pool holds is the most recently used content, and a block is found when
fewer blocks than the pool has were used since: its stack distance (Mattson et al. 1970). One thing is not in that
picture: a prompt that ends with a block computes its last one again, and both copies stay cached. A larger pool may
keep a copy that a smaller one has evicted, so each size is counted by itself, in one pass over the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from engine.traffic.blocks import BlockTrace

Counter = Callable[..., tuple[int, int, int]]
COMPILE_FROM = 200_000
"""Blocks from which compiling the loop takes less time than it saves."""
NUM_SIZES = 12


@dataclass(frozen=True, slots=True)
class PoolResult:
    """Of one size of the pool. num_refused: requests that are larger than it."""

    num_blocks: int
    hit_blocks: int
    num_evicted: int
    num_refused: int


def hit_curve(trace: BlockTrace, pool_sizes: Sequence[int]) -> list[PoolResult]:
    """One result for each size, in the order given."""
    is_long = len(trace.contents) >= COMPILE_FROM
    count: Counter = _compiled() if is_long else _count
    arrays = _as_is(trace) if is_long else _as_lists(trace)
    return [PoolResult(size, *(int(n) for n in count(*arrays, trace.num_contents, size))) for size in pool_sizes]


def pool_sizes_for(trace: BlockTrace, number: int = NUM_SIZES) -> list[int]:
    """Sizes from the largest request to all content there is, each so many times the one before."""
    lowest = max(trace.largest, 1)
    highest = max(int(trace.full.sum()) + trace.largest, lowest) if trace.num_requests else lowest
    highest = min(highest, trace.num_contents + int((trace.held - trace.findable).sum()) + 1)
    sizes = np.geomspace(lowest, max(highest, lowest), number)
    return sorted({round(float(size)) for size in sizes})


def _as_is(trace: BlockTrace) -> tuple[Any, ...]:
    return trace.contents, trace.ends, trace.findable, trace.full, trace.held


def _as_lists(trace: BlockTrace) -> tuple[Any, ...]:
    return tuple(array.tolist() for array in _as_is(trace))


@cache
def _compiled() -> Counter:
    import numba

    compiled: Counter = numba.njit(nogil=True)(_count)
    return compiled


def _count(contents, ends, findable, full, held, num_contents, num_blocks):  # type: ignore[no-untyped-def]
    """Hit blocks, evictions and refused requests of a pool of `num_blocks`; also compiled by Numba, so it is plain.

    Cached blocks form a list from the longest unused (`older` of it is the last entry, which stands for both ends) to
    the latest. Blocks of equal content are linked in the order in which they were cached; the first of them is found.
    """
    end = num_blocks
    older = [end] * (num_blocks + 1)
    newer = [end] * (num_blocks + 1)
    content_of = [-1] * (num_blocks + 1)
    next_copy = [-1] * (num_blocks + 1)
    first_copy = [-1] * num_contents
    empty = [num_blocks - 1 - i for i in range(num_blocks)]
    num_empty = num_blocks
    mine = [0] * num_blocks
    hits = evicted = refused = 0
    begin = 0
    for request in range(len(ends)):
        stop = ends[request]
        if held[request] > num_blocks:
            refused += 1
            begin = stop
            continue
        num_hit = 0
        while num_hit < findable[request] and first_copy[contents[begin + num_hit]] >= 0:
            block = first_copy[contents[begin + num_hit]]
            newer[older[block]] = newer[block]
            older[newer[block]] = older[block]
            mine[num_hit] = block
            num_hit += 1
        hits += num_hit
        for index in range(num_hit, held[request]):
            if num_empty > 0:
                num_empty -= 1
                block = empty[num_empty]
            else:
                block = newer[end]
                newer[end] = newer[block]
                older[newer[block]] = end
                evicted += 1
                content = content_of[block]
                if content >= 0:
                    if first_copy[content] == block:
                        first_copy[content] = next_copy[block]
                    else:
                        before = first_copy[content]
                        while next_copy[before] != block:
                            before = next_copy[before]
                        next_copy[before] = next_copy[block]
            mine[index] = block
            content_of[block] = -1
            next_copy[block] = -1
        for index in range(num_hit, stop - begin):
            block, content = mine[index], contents[begin + index]
            content_of[block] = content
            if first_copy[content] < 0:
                first_copy[content] = block
            else:
                last = first_copy[content]
                while next_copy[last] >= 0:
                    last = next_copy[last]
                next_copy[last] = block
        for index in range(held[request] - 1, -1, -1):
            block = mine[index]
            if index >= full[request]:
                empty[num_empty] = block
                num_empty += 1
            else:
                older[block] = older[end]
                newer[block] = end
                newer[older[end]] = block
                older[end] = block
        begin = stop
    return hits, evicted, refused
