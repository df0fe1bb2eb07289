"""The waste split of the paper's Fig. 2, on arenas and on pages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.fragmentation import KINDS, PAPER_FIGURE_2, Waste, waste
from engine.baselines.reservations import Fixed, Max, Oracle, Pow2
from engine.baselines.scheduler import ContiguousScheduler
from engine.kv_cache.block_pool import BlockPool
from engine.trace.events import RequestAdded, SequenceForked, SlotsWritten
from engine.trace.trace import Trace


def contiguous_frames(arrivals, num_slots, rule, allocator="buddy"):
    arena = Arena(num_slots, Trace(), rule, allocator)
    scheduler = ContiguousScheduler(arena, arrivals)
    while scheduler.has_unfinished_requests():
        scheduler.step()
    return [arena.trace.at(step) for step in range(arena.trace.num_steps + 1)]


def test_the_four_kinds_of_one_buddy_reservation():
    # Pow2: 3 + 8 = 11 asked, 16 held. After step 2: 4 written of 3 + 5 that will be used.
    frame = contiguous_frames([Arrival.from_lengths("A", 3, 5)], 32, Pow2(64))[2]
    assert waste(frame) == Waste(
        token_states=4, reservation=4, internal_fragmentation=3, external_fragmentation=5, free=16
    )


def test_free_memory_is_waste_only_while_a_request_waits():
    arrivals = [Arrival.from_lengths("A", 3, 2), Arrival.from_lengths("B", 5, 1)]
    frames = contiguous_frames(arrivals, 8, Oracle(), "first_fit")
    assert waste(frames[1]) == Waste(3, 2, 0, 3, 0)
    assert waste(frames[2]) == Waste(0, 0, 0, 8, 0), "A is done; B still waits for the next step"
    assert waste(frames[3]) == Waste(0, 0, 0, 0, 8)


def test_the_paper_setting_of_orca_max_loses_what_the_paper_prints():
    """OPT-13B has 15.7 K slots (paper Table 1: 12 GB of 800 KB each), Max reserves 2,048: seven requests fit, and
    the rest of memory is the 8.9 % that Fig. 2 prints as external fragmentation and others."""
    num_slots = 12 * 2**30 // (2 * 40 * 5120 * 2)
    assert num_slots == 15_728
    arrivals = [Arrival.from_lengths(f"r{i}", 16, 4) for i in range(8)]
    frame = contiguous_frames(arrivals, num_slots, Max(2048))[2]
    assert len(frame.regions) == 7
    counted = waste(frame)
    assert round(counted.percent("external_fragmentation"), 1) == 8.9
    assert counted.percent("external_fragmentation") == pytest.approx(
        PAPER_FIGURE_2["Max"]["external_fragmentation"], abs=0.06
    )


@pytest.mark.parametrize("system", ["Max", "Pow2", "Oracle"])
def test_the_papers_bars_add_up_to_all_memory(system):
    assert sum(PAPER_FIGURE_2[system].values()) == pytest.approx(100, abs=0.15)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=8),
    num_slots=st.integers(8, 64),
    allocator=st.sampled_from(["first_fit", "best_fit", "buddy"]),
)
def test_the_kinds_add_up_and_each_rule_wastes_its_own_kind(lengths, num_slots, allocator):
    arrivals = [Arrival.from_lengths(f"r{i}", p, o, arrival_step=s) for i, (s, p, o) in enumerate(lengths)]
    for rule in (Max(18), Pow2(64), Oracle()):
        for frame in contiguous_frames(arrivals, num_slots, rule, allocator):
            counted = waste(frame)
            assert counted.num_slots == num_slots
            assert all(counted.slots(kind) >= 0 for kind in KINDS)
            assert sum(counted.percent(kind) for kind in KINDS) == pytest.approx(100)
            if rule == Oracle():
                assert counted.internal_fragmentation == 0


def test_a_reply_of_unknown_length_may_still_use_all_it_is_allowed():
    arena = Arena(16, Trace(), Oracle())
    arena.reserve(Arrival.from_lengths("A", 3, 5))
    arena.write("A")
    frame = arena.trace.at(0)
    frame.requests["A"].num_output_tokens = None
    assert waste(frame) == Waste(3, 5, 0, 0, 8)
    frame.requests["A"].max_tokens = 1
    assert waste(frame) == Waste(3, 1, 4, 0, 8)


def test_a_reply_longer_than_its_reservation_uses_what_was_asked_for_and_no_more():
    arena = Arena(16, Trace(), Fixed(5), "buddy")
    arena.reserve(Arrival.from_lengths("A", 3, 9))
    arena.write("A")
    assert waste(arena.trace.at(0)) == Waste(3, 2, 0, 3, 8)


def test_a_reply_longer_than_announced_is_counted_as_written():
    """A foreign trace may be wrong about lengths; the kinds still add up, none below 0."""
    arena = Arena(16, Trace(), Fixed(8))
    arena.reserve(Arrival.from_lengths("A", 3, 3))
    arena.append("A", 3)
    contiguous, on_pages = arena.trace.at(0), paged(6, None)[0].at(0)
    for frame in (contiguous, on_pages):
        frame.requests["A"].num_output_tokens = 0
        frame.sequences["A"].num_prompt_tokens = 5
    assert waste(contiguous) == Waste(6, 0, 2, 0, 8)
    assert waste(on_pages) == Waste(6, 0, 2, 0, 12)


def paged(num_tokens, num_output_tokens, block_size=4, num_blocks=5):
    """One sequence of `num_tokens` prompt tokens, written, on pages."""
    trace = Trace()
    pool = BlockPool(num_blocks, block_size, trace)
    ids = tuple(range(num_tokens))
    trace.append(RequestAdded(0, "A", ids, ("x",) * num_tokens, 8, num_output_tokens=num_output_tokens))
    blocks = [pool.allocate("A", index) for index in range(-(-num_tokens // block_size))]
    slots = tuple(blocks[i // block_size] * block_size + i % block_size for i in ids)
    trace.append(SlotsWritten(0, "A", 0, slots))
    return trace, pool


def test_blocks_waste_at_most_the_tail_of_the_last_block():
    assert waste(paged(11, None)[0].at(0)) == Waste(11, 1, 0, 0, 8)
    assert waste(paged(9, 1)[0].at(0)) == Waste(9, 1, 2, 0, 8)
    assert waste(paged(12, 0)[0].at(0)) == Waste(12, 0, 0, 0, 8)


def test_a_shared_block_counts_once_up_to_its_longest_owner():
    trace, pool = paged(6, None)
    trace.append(SequenceForked(0, "A", "A#1", "A"))
    for index, block_id in enumerate(list(trace.at(0).sequences["A"].block_table)):
        pool.share(block_id, "A#1", index, "fork")
    assert waste(trace.at(0)) == Waste(6, 2, 0, 0, 12)


def test_freed_blocks_count_as_free_with_old_content():
    trace, pool = paged(6, None)
    for index, block_id in reversed(list(enumerate(trace.at(0).sequences["A"].block_table))):
        pool.release(block_id, "A", index)
    assert waste(trace.at(0)) == Waste(0, 0, 0, 0, 20)


def test_no_memory_is_no_waste():
    counted = waste(Trace().at(0))
    assert (counted.num_slots, counted.percent("free")) == (0, 0.0)
