"""The scheduler over an arena: who waits, why, who runs, and what a race of reservation rules looks like."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.baselines.arrivals import ALPACA, Arrival, draw_arrivals, parse_arrivals
from engine.baselines.contiguous import ALLOCATORS, Arena
from engine.baselines.reservations import Fixed, Max, Oracle, Pow2
from engine.baselines.scheduler import ContiguousScheduler, replay
from engine.trace.events import (
    AdmissionDeferred,
    RequestAdmitted,
    RequestFinished,
    RequestRefused,
    SequenceScheduled,
    SlotsWritten,
    StepCompleted,
    TokenSampled,
)
from engine.trace.trace import Trace


def of_type(trace, event_type):
    return [event for event in trace if isinstance(event, event_type)]


def test_the_prompt_is_written_in_one_step_then_one_token_a_step():
    trace = replay([Arrival.from_words("A", ["a", "b", "c"], ["d", "e", "f"])], 8, Oracle(), "first_fit")
    assert of_type(trace, SlotsWritten) == [
        SlotsWritten(1, "A", 0, (0, 1, 2)),
        SlotsWritten(2, "A", 3, (3,)),
        SlotsWritten(3, "A", 4, (4,)),
    ]
    assert [(e.step, e.position, e.piece) for e in of_type(trace, TokenSampled)] == [
        (1, 3, "d"),
        (2, 4, "e"),
        (3, 5, "f"),
    ]
    assert of_type(trace, SequenceScheduled)[1] == SequenceScheduled(2, "A", 3, 1)
    assert of_type(trace, RequestFinished) == [RequestFinished(3, "A", "stop")]
    assert [(e.step, e.num_scheduled_tokens, e.num_running, e.num_waiting) for e in of_type(trace, StepCompleted)] == [
        (1, 3, 1, 0),
        (2, 1, 1, 0),
        (3, 1, 0, 0),
    ]
    assert trace.at(3).counters.num_scheduled_tokens == 5
    assert trace.at(2).sequences["A"].num_tokens == 5
    assert trace.at(2).sequences["A"].num_computed_tokens == 4


def test_head_of_line_blocking():
    arrivals = parse_arrivals("1 6 4\n1 5 3\n1 1 1\n")
    trace = replay(arrivals, 16, Oracle(), "first_fit")
    assert of_type(trace, AdmissionDeferred) == [
        AdmissionDeferred(1, "r1", "6 slots free, longest gap 6, need 8"),
    ]
    assert [(e.step, e.request_id) for e in of_type(trace, RequestAdmitted)] == [(1, "r0"), (5, "r1"), (5, "r2")]
    assert trace.at(2).requests["r1"].reason == "6 slots free, longest gap 6, need 8"
    assert trace.at(5).requests["r1"].reason == ""


def test_a_reason_to_wait_is_written_once_and_again_when_it_changes():
    trace = replay(parse_arrivals("1 4 4\n1 2 2\n1 6 9\n"), 16, Oracle(), "first_fit")
    assert of_type(trace, AdmissionDeferred) == [
        AdmissionDeferred(1, "r2", "4 slots free, longest gap 4, need 15"),
        AdmissionDeferred(3, "r2", "8 slots free, longest gap 8, need 15"),
    ]
    assert of_type(trace, RequestAdmitted)[-1] == RequestAdmitted(5, "r2", "waiting")


def test_a_request_that_can_never_fit_is_refused_and_the_others_run():
    trace = replay(parse_arrivals("1 20 20\n1 2 2\n"), 16, Oracle(), "buddy")
    assert of_type(trace, RequestRefused) == [RequestRefused(0, "r0", "longest gap 16 when all is free, need 64")]
    assert [e.request_id for e in of_type(trace, RequestFinished)] == ["r1"]
    assert "r0" not in trace.at(trace.num_steps).sequences


def test_a_duplicate_request_id_is_refused():
    trace = replay([Arrival.from_lengths("A", 2, 3), Arrival.from_lengths("A", 1, 1)], 16, Oracle())
    assert of_type(trace, RequestRefused) == [RequestRefused(0, "A", "there was a request named A before")]
    assert of_type(trace, RequestFinished) == [RequestFinished(3, "A", "stop")]


def test_a_full_reservation_ends_the_reply():
    trace = replay([Arrival.from_lengths("A", 3, 9)], 8, Fixed(5), "first_fit")
    assert of_type(trace, RequestFinished) == [RequestFinished(2, "A", "length")]
    assert trace.at(2).sequences["A"].num_tokens == 5


def test_a_prompt_that_fills_the_reservation_gets_no_reply():
    trace = replay([Arrival.from_lengths("A", 5, 2)], 8, Fixed(5))
    assert of_type(trace, RequestFinished) == [RequestFinished(1, "A", "length")]
    assert of_type(trace, TokenSampled) == []


def test_a_reply_of_no_tokens_ends_with_the_prompt_written():
    trace = replay([Arrival.from_lengths("A", 3, 0)], 8, Oracle())
    assert of_type(trace, RequestFinished) == [RequestFinished(1, "A", "stop")]
    assert trace.at(1).sequences["A"].num_computed_tokens == 3


def test_steps_without_work_are_steps_too():
    trace = replay(parse_arrivals("4 1 1\n"), 8, Oracle())
    assert [e.num_scheduled_tokens for e in of_type(trace, StepCompleted)] == [0, 0, 0, 1]
    assert trace.at(2).requests == {}
    assert trace.at(3).requests["r0"].status == "waiting", "added after step 3, before step 4"


def test_larger_reservations_make_requests_wait_earlier():
    """The race in small: one request a step, 4 prompt tokens and 9 of reply, into 64 slots."""
    arrivals = [Arrival.from_lengths(f"r{i}", 4, 9, arrival_step=1 + i) for i in range(8)]
    first_wait = {
        rule.label: of_type(replay(arrivals, 64, rule, "first_fit"), AdmissionDeferred)[0]
        for rule in (Max(32), Pow2(64), Oracle())
    }
    assert first_wait == {
        "Max (32)": AdmissionDeferred(3, "r2", "0 slots free, longest gap 0, need 32"),
        "Pow2": AdmissionDeferred(4, "r3", "4 slots free, longest gap 4, need 20"),
        "Oracle": AdmissionDeferred(5, "r4", "12 slots free, longest gap 12, need 13"),
    }


@pytest.mark.parametrize("allocator", ALLOCATORS)
@settings(max_examples=40)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 12), st.integers(0, 12)), max_size=12),
    rule=st.sampled_from([Max(16), Pow2(64), Oracle(), Fixed(9)]),
    num_slots=st.integers(1, 64),
)
def test_every_replay_ends_with_all_memory_free(allocator, lengths, rule, num_slots):
    arena = Arena(num_slots, Trace(), rule, allocator)
    whole = arena.allocator.free_extents()
    arrivals = [Arrival.from_lengths(f"r{i}", p, o, arrival_step=s) for i, (s, p, o) in enumerate(lengths)]
    scheduler = ContiguousScheduler(arena, arrivals)
    while scheduler.has_unfinished_requests():
        scheduler.step()
        arena.check_invariants()
        assert arena.trace.step < 1000
    assert arena.allocator.free_extents() == whole
    end = arena.trace.at(arena.trace.num_steps)
    assert len(end.requests) == len(arrivals)
    assert {request.status for request in end.requests.values()} <= {"finished", "refused"}
    admitted = [e.request_id for e in of_type(arena.trace, RequestAdmitted)]
    in_order = [a.request_id for a in sorted(arrivals, key=lambda a: a.arrival_step) if a.request_id in admitted]
    assert admitted == in_order, "first come, first served"


def test_a_replay_is_the_same_every_time_and_survives_json():
    arrivals = draw_arrivals(ALPACA.scaled(0.2), 20, requests_per_step=0.5, max_model_len=40, seed=3)
    first, second = replay(arrivals, 64, Pow2(64)), replay(arrivals, 64, Pow2(64))

    def untimed(trace):
        return [e for e in trace if not isinstance(e, StepCompleted)]

    assert untimed(first) == untimed(second)
    again = Trace.from_json(first.to_json())
    assert again.events == first.events
    assert again.info == {"source": "contiguous", "allocator": "buddy", "reservation": "Pow2"}
    middle = first.num_steps // 2
    assert again.at(middle) == first.at(middle)
