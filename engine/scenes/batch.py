"""Lesson "Memory across a batch": the same requests in equal reservations and in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.arrivals import Arrival
from engine.contiguous_scenes import reservations_side_by_side
from engine.scenes.paged_memory import PagedMemory
from engine.scenes.scene import Scene
from engine.scenes.scripted_run import blocks_for
from engine.trace import Trace

LENGTHS = (5, 13, 7, 18, 10, 16, 4, 12, 9, 15)
"""Tokens of each request. The first five are the guide's batch."""

NUM_RESERVED = 20
BLOCK_SIZE = 4


@dataclass(frozen=True)
class Batch:
    """The same requests in both layouts. In both, value k shows the first k requests, each with all its tokens."""

    contiguous: Scene
    paged: Scene


def batch(lengths: Sequence[int] = LENGTHS, num_reserved: int = NUM_RESERVED, block_size: int = BLOCK_SIZE) -> Batch:
    """Both layouts. Values: number of requests, 0 to `len(lengths)`.

    Memory is `len(lengths) * num_reserved` slots in both; the pool is rounded up to whole blocks, and made larger
    only when its blocks are so large that they need more than the reservations do.
    Raises ValueError when a reservation is too small for a length.
    """
    contiguous = reservations_side_by_side(lengths, num_reserved)
    num_needed = sum(blocks_for(length, block_size) for length in lengths)
    num_blocks = max(blocks_for(len(lengths) * num_reserved, block_size), num_needed)
    paged = blocks_side_by_side(lengths, block_size, num_blocks)
    return Batch(_by_number(contiguous, len(lengths)), paged)


def blocks_side_by_side(lengths: Sequence[int], block_size: int, num_blocks: int) -> Scene:
    """The paged half alone, in a pool of `num_blocks`. Values: number of requests, 0 to all.

    The same arrivals as the contiguous half; step k stores request k with all its tokens.
    Raises ValueError when the pool is too small.
    """
    memory = PagedMemory(num_blocks, block_size, Trace(info={"source": "engine, blocks by hand"}))
    for number, length in enumerate(lengths, 1):
        memory.trace.step = number
        arrival = Arrival.from_lengths(f"R{number}", 1, length - 1, arrival_step=number)
        if not memory.store(arrival):
            raise ValueError(f"R{number} does not fit: {memory.why_not_now(arrival)}.")
        memory.check_invariants()
    return _by_number(memory.trace, len(lengths))


def _by_number(trace: Trace, num_requests: int) -> Scene:
    return Scene(trace, {number: number for number in range(num_requests + 1)}, "requests")
