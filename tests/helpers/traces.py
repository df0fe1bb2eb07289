"""Small whole traces for tests of the log and its fold: one on pages with nearly every block event, one contiguous."""

from __future__ import annotations

from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import ReservationRule
from engine.baselines.scheduler import ContiguousScheduler
from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.prefix_cache import PrefixNode
from engine.trace.events import (
    AdmissionDeferred,
    BlockCopied,
    BlockSwappedIn,
    BlockSwappedOut,
    Event,
    PrefixQueried,
    RequestAdded,
    RequestAdmitted,
    RequestFinished,
    RequestPreempted,
    RequestRefused,
    SequenceFinished,
    SequenceForked,
    SequenceScheduled,
    SlotsWritten,
    StepCompleted,
    TokenSampled,
)
from engine.trace.state import CacheState
from engine.trace.trace import Trace


def plain_fold(events: list[Event]) -> CacheState:
    """The state after the events, folded one by one from the start."""
    state = CacheState()
    for event in events:
        state.apply(event)
    return state


def contiguous_trace(arrivals: list[Arrival], num_slots: int, rule: ReservationRule) -> Trace:
    trace = Trace()
    scheduler = ContiguousScheduler(Arena(num_slots, trace, rule, "buddy"), arrivals)
    while scheduler.has_unfinished_requests():
        scheduler.step()
    return trace


def paged_trace() -> Trace:
    """6 blocks of 2. Request A forks, copies on write, is swapped out and in, and ends; B is refused, C waits."""
    trace = Trace(info={"source": "test"})
    pool = BlockPool(6, 2, trace, num_cpu_blocks=3, free_order=(4, 1))
    trace.append(RequestAdded(0, "A", (10, 11, 12), ("The", " red", " fox"), 4, n=2))
    trace.append(RequestRefused(0, "B", "The prompt is empty."))
    trace.step = 1
    trace.append(PrefixQueried(1, "A", 3, 0, False))
    trace.append(RequestAdmitted(1, "A", "waiting"))
    trace.append(SequenceScheduled(1, "A", 0, 3))
    first, second = pool.allocate("A", 0), pool.allocate("A", 1)
    trace.append(SlotsWritten(1, "A", 0, (8, 9, 2)))
    pool.cache_block(first, PrefixNode(None, (10, 11), 77), "A", 0)
    trace.append(SequenceForked(1, "A", "A#1", "A"))
    pool.share(first, "A#1", 0, "fork")
    pool.share(second, "A#1", 1, "fork")
    trace.append(TokenSampled(1, "A", 3, 13, " ran", -0.5))
    trace.append(TokenSampled(1, "A#1", 3, 14, " sat"))
    trace.append(StepCompleted(1, 3, 1, 0, 2.5))
    trace.step = 2
    trace.append(SequenceScheduled(2, "A", 3, 1))
    copy = pool.take_free_block().block_id
    pool.drop_reference(pool.blocks[second])
    trace.append(BlockCopied(2, second, copy, "A", 1, 1, 1))
    trace.append(SlotsWritten(2, "A", 3, (copy * 2 + 1,)))
    trace.append(SlotsWritten(2, "A#1", 3, (second * 2 + 1,)))
    trace.append(RequestAdded(2, "C", (10,), ("The",), 1))
    trace.append(AdmissionDeferred(2, "C", "max_num_seqs is reached"))
    trace.append(StepCompleted(2, 2, 1, 1, 1.5))
    trace.step = 3
    pool.permute((5, 4, 3, 2, 1, 0))
    trace.append(RequestPreempted(3, "A", "swap", "no block is free"))
    for seq_id, tail in (("A", 5 - copy), ("A#1", 5 - second)):
        trace.append(BlockSwappedOut(3, 5 - first, 0, seq_id, 0))
        trace.append(BlockSwappedOut(3, tail, 1 if seq_id == "A" else 2, seq_id, 1))
        pool.release(tail, seq_id, 1)
        pool.release(5 - first, seq_id, 0)
    trace.append(StepCompleted(3, 0, 0, 1, 0.5))
    trace.step = 4
    trace.append(SequenceFinished(4, "A#1", "stop"))
    trace.append(RequestAdmitted(4, "A", "swapped"))
    for index in range(2):
        trace.append(BlockSwappedIn(4, index, pool.allocate("A", index), "A", index))
    pool.release(trace.at(4).sequences["A"].block_table[1], "A", 1)
    pool.release(trace.at(4).sequences["A"].block_table[0], "A", 0)
    trace.append(SequenceFinished(4, "A", "length"))
    trace.append(RequestFinished(4, "A", "length"))
    pool.clear_prefix_cache()
    trace.append(StepCompleted(4, 0, 0, 1, 0.25))
    return trace
