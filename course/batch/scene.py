"""Lesson "Memory across a batch": the same requests in equal reservations and in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, takewhile

from course.paged_arena import PagedArena
from course.scene import Scene
from course.scripted_engine import blocks_for
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import Fixed
from engine.i18n import _
from engine.trace.event_base import percentage
from engine.trace.trace import Trace
from engine.trace.usage import usage_of

Batch = Sequence[int | Sequence[str]]
"""Requests, each as its number of tokens or as its words, one token each."""

LENGTHS = (5, 13, 7, 18, 10, 16, 4, 12, 9, 15)
"""Tokens of each request. The first five are the batch of the worked example: 53 tokens."""

NUM_RESERVED = 20
BLOCK_SIZE = 4


@dataclass(frozen=True)
class BatchLayouts:
    """The same requests in both layouts. In both, value k shows the first k requests, each with all its tokens."""

    contiguous: Scene
    paged: Scene


def batch(requests: Batch = LENGTHS, num_reserved: int = NUM_RESERVED, block_size: int = BLOCK_SIZE) -> BatchLayouts:
    """Both layouts. Values: number of requests, 0 to `len(requests)`.

    Memory is `len(requests) * num_reserved` slots in both; the pool is rounded up to whole blocks, and made larger
    only when its blocks are so large that they need more than the reservations do.
    Raises ValueError when a reservation is too small for a length.
    """
    contiguous = reservations_side_by_side(requests, num_reserved)
    num_needed = sum(blocks_for(arrival.num_tokens, block_size) for arrival in _arrivals(requests))
    num_blocks = max(blocks_for(len(requests) * num_reserved, block_size), num_needed)
    paged = blocks_side_by_side(requests, block_size, num_blocks)
    return BatchLayouts(_by_number(contiguous, len(requests)), paged)


def num_that_fit(
    requests: Batch = LENGTHS, num_reserved: int = NUM_RESERVED, block_size: int = BLOCK_SIZE
) -> tuple[int, int]:
    """How many requests the memory of `batch` holds at once when they keep coming: in reservations, and in blocks.

    The requests arrive over and over, in their order, until one is refused.
    """
    num_slots = len(requests) * num_reserved
    arena = Arena(num_slots, Trace(), Fixed(num_reserved))
    memory = PagedArena(num_slots // block_size, block_size, Trace())
    for arrival in takewhile(arena.reserve, _arrivals(cycle(requests))):
        arena.append(arrival.request_id, arrival.num_output_tokens)
    for _arrival in takewhile(memory.store, _arrivals(cycle(requests))):
        pass
    return len(arena.residents), len(memory.residents)


def reservations_side_by_side(requests: Batch, num_reserved: int) -> Trace:
    """A batch of requests, each with `num_reserved` slots. Step `k` writes all tokens of request `k`, counted from 1.

    Raises ValueError when a length is not 1 to `num_reserved`.
    """
    arrivals = list(_arrivals(requests))
    if not arrivals or any(arrival.num_tokens > num_reserved for arrival in arrivals):
        raise ValueError(_("Every request needs a length of 1 to {num_reserved}.").format(num_reserved=num_reserved))
    arena = Arena(len(arrivals) * num_reserved, Trace(), Fixed(num_reserved))
    for arrival in arrivals:
        arena.trace.step = arrival.arrival_step
        arena.reserve(arrival)
        arena.append(arrival.request_id, arrival.num_output_tokens)
    return arena.trace


def blocks_side_by_side(requests: Batch, block_size: int, num_blocks: int) -> Scene:
    """The paged half alone, in a pool of `num_blocks`. Values: number of requests, 0 to all.

    The same arrivals as the contiguous half; step k stores request k with all its tokens.
    Raises ValueError when the pool is too small.
    """
    memory = PagedArena(num_blocks, block_size, Trace(info={"source": "engine, blocks by hand"}))
    for arrival in _arrivals(requests):
        memory.trace.step = arrival.arrival_step
        if not memory.store(arrival):
            raise ValueError(
                _("{request_id} does not fit: {wait_reason}.").format(
                    request_id=arrival.request_id, wait_reason=memory.wait_reason(arrival)
                )
            )
        memory.check_invariants()
    return _by_number(memory.trace, len(requests))


def gauges_by_requests(scene: Scene) -> dict[int, tuple[float, float]]:
    """By number of requests: the percent of the pool's blocks that are used, and of its slots that are written."""
    usages = {number: usage_of(scene.at(number)) for number in scene.values}
    return {number: (_percent(usage.block_fraction), _percent(usage.slot_fraction)) for number, usage in usages.items()}


def _arrivals(requests: Iterable[int | Sequence[str]]) -> Iterator[Arrival]:
    """R1, R2, ...: a prompt of one token, the rest being the reply."""
    for number, request in enumerate(requests, 1):
        if isinstance(request, int):
            yield Arrival.from_lengths(f"R{number}", 1, request - 1, arrival_step=number)
        else:
            yield Arrival.from_words(f"R{number}", request[:1], request[1:], arrival_step=number)


def _percent(fraction: float) -> float:
    return float(percentage(100 * fraction, 1))


def _by_number(trace: Trace, num_requests: int) -> Scene:
    return Scene(trace, {number: number for number in range(num_requests + 1)}, "requests")
