"""The arena by hand: the worked examples' figures, refusals in words, and agreement between the arena and its trace."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.batch.scene import reservations_side_by_side
from course.reserved_space.scene import one_reservation
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import ALLOCATORS, Arena
from engine.baselines.extent import Extent
from engine.baselines.fragmentation import free_extents, waste
from engine.baselines.reservations import Fixed, Max, Oracle, Pow2
from engine.trace.events import (
    ArenaCreated,
    RegionFreed,
    RegionReserved,
    RequestAdded,
    RequestAdmitted,
    RequestFinished,
    RequestRefused,
    SequenceFinished,
    SlotsWritten,
    TokenSampled,
)
from engine.trace.state import MAX_SLOTS, SlotContent
from engine.trace.trace import Trace
from tests.helpers.contiguous_traces import paper_figure_3, scattered_gaps

# ---- worked examples ----


def test_a_reservation_of_16_with_7_used_leaves_9_empty_56_percent():
    frame = one_reservation(16, ["word"] * 7).at(7)
    counted = waste(frame)
    assert counted.token_states == 7
    assert counted.internal_fragmentation == 9
    assert round(counted.percent("internal_fragmentation")) == 56
    assert counted.num_slots == 16


def test_a_reservation_of_32_for_14_words_wastes_18():
    words = [f"w{i}" for i in range(14)]
    trace = one_reservation(32, words)
    assert waste(trace.at(14)).internal_fragmentation == 18
    assert [content.piece if content else None for content in trace.at(14).arena] == [*words, *[None] * 18]
    assert [waste(trace.at(step)).token_states for step in range(15)] == list(range(15))


def test_a_limit_of_2048_with_a_reply_of_60_leaves_1988_idle():
    assert waste(one_reservation(2048, ["word"] * 60).at(60)).internal_fragmentation == 1988


def test_five_requests_of_20_reserve_100_slots_and_store_53():
    counted = waste(reservations_side_by_side([5, 13, 7, 18, 10], 20).at(5))
    assert counted.num_held == 100
    assert counted.token_states == 53
    assert counted.internal_fragmentation == 47


@pytest.mark.parametrize("allocator", ["first_fit", "best_fit"])
def test_free_gaps_of_8_6_and_10_refuse_a_request_of_20(allocator):
    trace, arena = scattered_gaps(allocator)
    assert trace.events_of(9) == [RequestRefused(9, "F", "24 slots free, longest gap 10, need 20")]
    assert trace.events_of(9)[0].describe() == ("Request F is refused: 24 slots free, longest gap 10, need 20.")
    assert [extent.num_slots for extent in free_extents(trace.at(9))] == [8, 6, 10]
    before, after = trace.at(8), trace.at(9)
    assert (after.regions, after.arena, after.sequences) == (before.regions, before.arena, before.sequences)
    assert after.requests["F"].status == "refused"
    assert arena.reserve(Arrival.from_lengths("G", 4, 6)), "a request of 10 still fits"


def test_paper_figure_3():
    trace = paper_figure_3()
    frame = trace.at(2)
    assert {r.request_id: r.num_slots for r in frame.regions.values()} == {"A": 2048, "B": 512}
    counted = waste(frame)
    assert counted.token_states == 7 + 1 + 3 + 1
    assert counted.reservation == 2 + 1
    assert counted.internal_fragmentation == 2038 + 507
    assert "".join(frame.sequences["A"].pieces) == "Fourscoreandsevenyearsagoourfathers"


# ---- the rules ----


@pytest.mark.parametrize(
    ("rule", "label", "num_slots"),
    [
        (Max(2048), "Max (2048)", 2048),
        (Pow2(2048), "Pow2", 10 + 32),
        (Oracle(), "Oracle", 10 + 25),
        (Pow2(40), "Pow2", 40),
        (Oracle(30), "Oracle", 30),
        (Fixed(40), "Fixed (40)", 40),
    ],
)
def test_reservation_rules_for_a_prompt_of_10_and_a_reply_of_25(rule, label, num_slots):
    assert rule.label == label
    assert rule.num_slots(Arrival.from_lengths("A", 10, 25)) == num_slots


# ---- events by hand ----


def test_the_events_of_a_request_from_arrival_to_finish():
    arena = Arena(16, Trace(), Oracle(), "buddy")
    arena.trace.step = 1
    assert arena.reserve(Arrival.from_words("A", ["The", "red"], ["fox"]))
    arena.append("A")
    arena.finish("A")
    assert list(arena.trace) == [
        ArenaCreated(0, 16, "buddy", "Oracle"),
        RequestAdded(1, "A", (0, 1), ("The", "red"), 1, num_output_tokens=1),
        RequestAdmitted(1, "A", "waiting"),
        RegionReserved(1, "A", 0, 4, 3),
        SlotsWritten(1, "A", 0, (0, 1)),
        TokenSampled(1, "A", 2, 2, "fox"),
        SlotsWritten(1, "A", 2, (2,)),
        SequenceFinished(1, "A", "stop"),
        RequestFinished(1, "A", "stop"),
        RegionFreed(1, "A", 0, 4),
    ]
    assert arena.trace.at(1).arena[2] == SlotContent("A", 2, 2, "fox"), "freed, not erased"


def test_the_buddy_allocator_reports_the_size_it_needs():
    arena = Arena(32, Trace(), Oracle(), "buddy")
    arena.reserve(Arrival.from_lengths("A", 4, 4))
    assert not arena.reserve(Arrival.from_lengths("B", 8, 12))
    assert arena.trace.events[-1].reason == "24 slots free, longest gap 16, need 32"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("rule", "allocator", "arrival", "reason"),
    [
        (Oracle(), "first_fit", Arrival.from_lengths("B", 30, 11), "longest gap 40 when all is free, need 41"),
        (Oracle(), "buddy", Arrival.from_lengths("B", 30, 3), "longest gap 32 when all is free, need 64"),
        (Fixed(8), "best_fit", Arrival.from_lengths("B", 9, 1), "its prompt has 9 tokens, the reservation 8"),
        (Fixed(8), "best_fit", Arrival.from_lengths("A", 1, 1), "there was a request named A before"),
    ],
)
def test_a_request_that_can_never_fit_is_refused_alone(rule, allocator, arrival, reason):
    arena = Arena(40, Trace(), rule, allocator)
    assert arena.reserve(Arrival.from_lengths("A", 2, 2))
    extents = arena.allocator.free_extents()
    assert not arena.reserve(arrival)
    assert arena.trace.events[-1] == RequestRefused(0, arrival.request_id, reason)
    assert arena.allocator.free_extents() == extents
    assert list(arena.residents) == ["A"]
    arena.append("A", 2)
    assert arena.trace.at(0).requests["A"].status == "running"


def test_a_reply_ends_with_its_words_and_a_reservation_with_its_slots():
    arena = Arena(8, Trace(), Fixed(3))
    arena.reserve(Arrival.from_words("A", ["a"], ["b"]))
    arena.append("A")
    with pytest.raises(ValueError, match=r"^A has no more tokens\.$"):
        arena.append("A")
    arena.reserve(Arrival.from_words("B", ["a"], ["b", "c", "d"]))
    with pytest.raises(ValueError, match=r"^B has filled its 3 slots; there is no room for another token\.$"):
        arena.append("B", 3)
    with pytest.raises(KeyError):
        arena.append("C")
    assert [slot.piece if slot else None for slot in arena.trace.at(0).arena] == [
        "a",
        "b",
        None,
        "a",
        "b",
        "c",
        None,
        None,
    ]


def test_arena_arguments_are_checked():
    with pytest.raises(ValueError, match=r"^An arena has 1 to 16777216 slots, not 0\.$"):
        Arena(0, Trace(), Oracle())
    with pytest.raises(ValueError, match="not 16777217"):
        Arena(MAX_SLOTS + 1, Trace(), Oracle())
    with pytest.raises(ValueError, match=r"^The allocator must be one of first_fit, best_fit, buddy\.$"):
        Arena(8, Trace(), Oracle(), "worst_fit")
    with pytest.raises(ValueError, match=r"^A reservation of 4 slots holds 1 to 4 words, not 5\.$"):
        one_reservation(4, ["word"] * 5)
    with pytest.raises(ValueError, match=r"^Every request needs a length of 1 to 20\.$"):
        reservations_side_by_side([5, 21], 20)


def test_a_corrupted_arena_fails_the_check():
    arena = Arena(8, Trace(), Oracle())
    arena.reserve(Arrival.from_lengths("A", 2, 2))
    arena.check_invariants()
    arena.residents["A"].extent = Extent(1, 4)
    with pytest.raises(AssertionError, match="cover every slot exactly once"):
        arena.check_invariants()


# ---- the arena and the fold of its trace never disagree ----

actions = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(0, 12)),
        st.tuples(st.sampled_from(["append", "finish"]), st.integers(0, 9), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("allocator", ALLOCATORS)
@given(actions=actions, rule=st.sampled_from([Max(20), Pow2(64), Oracle(), Fixed(9)]), num_slots=st.integers(1, 64))
def test_random_use_keeps_the_invariants(allocator, actions, rule, num_slots):
    arena = Arena(num_slots, Trace(), rule, allocator)
    for number, (action, first, second) in enumerate(actions):
        arena.trace.step = number
        ids = list(arena.residents)
        if action == "reserve":
            arena.reserve(Arrival.from_lengths(f"r{number}", first, second))
        elif ids:
            resident = arena.residents[request_id := ids[first % len(ids)]]
            if action == "finish":
                arena.finish(request_id)
            elif resident.has_room and not resident.is_complete:
                arena.append(request_id)
        arena.check_invariants()
    frame = arena.trace.at(arena.trace.num_steps)
    assert free_extents(frame) == arena.allocator.free_extents()
    assert {i: (r.start, r.num_slots, r.num_needed, r.num_written) for i, r in frame.regions.items()} == {
        i: (*r.extent, r.num_needed, r.num_computed_tokens) for i, r in arena.residents.items()
    }
    for request_id, resident in arena.residents.items():
        region = frame.arena[resident.extent.start :][: resident.num_computed_tokens]
        assert [(slot.seq_id, slot.position) for slot in region] == [
            (request_id, position) for position in range(resident.num_computed_tokens)
        ]
    assert waste(frame).num_slots == num_slots


def test_no_torch_and_no_streamlit_is_imported():
    script = (
        "import sys, engine.baselines.contiguous, engine.baselines.scheduler\n"
        "import course.reserved_space.scene, engine.baselines.fragmentation\n"
        "print(sorted({'torch', 'numpy', 'streamlit', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
