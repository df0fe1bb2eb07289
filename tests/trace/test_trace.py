"""The log: seeking equals folding, files round-trip, damaged and hostile files are refused in words."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.baselines.arrivals import Arrival
from engine.baselines.reservations import Max, Oracle, Pow2
from engine.config import EngineConfig
from engine.trace.event_base import Event
from engine.trace.events import ArenaCreated, PoolCreated, RequestAdded, SlotsWritten, StepCompleted
from engine.trace.state import CacheState, ReplayError
from engine.trace.trace import KEYFRAME_EVERY, MAX_STEPS, MAX_UNKNOWN_FIELDS, SCHEMA_VERSION, Trace, TraceError
from tests.helpers.hash_model import hash_engine
from tests.helpers.traces import contiguous_trace, paged_trace, plain_fold


def replayed_trace(num_requests: int = 10) -> Trace:
    """A contiguous replay with idle stretches."""
    arrivals = [Arrival.from_lengths(f"r{i}", 3, 9, arrival_step=1 + 25 * i) for i in range(num_requests)]
    return contiguous_trace(arrivals, 32, Pow2(64))


def long_trace() -> Trace:
    """More than three keyframes long."""
    return replayed_trace(100)


def damaged(change) -> str:
    document = json.loads(paged_trace().to_json())
    change(document)
    return json.dumps(document)


@pytest.fixture(scope="module")
def often_remembered():
    """Look at every third event whether to remember the state, so that short traces have keyframes, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.trace.trace.KEYFRAME_EVERY", 3)
        yield


# ---- seeking ----


def test_a_new_trace_has_step_0_and_nothing_in_it():
    trace = Trace()
    assert (len(trace), trace.num_steps, list(trace.events_of(0))) == (0, 0, [])
    assert trace.at(0) == plain_fold([])


@pytest.mark.parametrize("step", [-1, 5])
def test_steps_outside_the_trace_are_refused(step):
    with pytest.raises(IndexError) as error:
        paged_trace().at(step)
    assert str(error.value) == f"Step {step} is outside this trace, which has steps 0 to 4."


def test_events_of_a_step_are_those_stamped_with_it():
    trace = paged_trace()
    assert [event for step in range(trace.num_steps + 1) for event in trace.events_of(step)] == list(trace)
    for step in range(trace.num_steps + 1):
        assert {event.step for event in trace.events_of(step)} == {step}
    assert list(trace.events_of(-1)) == list(trace.events_of(99)) == []


def test_idle_steps_have_no_events_and_keep_the_state():
    trace = Trace(events=[ArenaCreated(0, 4, "buddy", "Max"), StepCompleted(7, 0, 0, 0, 0.0)])
    assert trace.num_steps == 7
    assert list(trace.events_of(3)) == []
    assert trace.at(3) == trace.at(0)


def test_a_drained_trace_returns_each_event_once():
    trace = paged_trace()
    written = list(trace)
    assert trace.drain() == written
    assert (trace.drain(), len(trace), trace.step, trace.num_steps) == ([], 0, 0, 0)
    trace.append(StepCompleted(1, 0, 0, 0, 0.0))
    assert trace.drain() == [StepCompleted(1, 0, 0, 0, 0.0)]
    with pytest.raises(ReplayError, match="passed on while it grew"):
        trace.at(0)


def test_steps_never_go_back():
    trace = paged_trace()
    with pytest.raises(ValueError, match=r"^step 3 comes after step 4; steps never go back\.$"):
        trace.append(StepCompleted(3, 0, 0, 0, 0.0))
    assert trace.num_steps == 4


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 250), st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=10),
    rule=st.sampled_from([Max(40), Pow2(64), Oracle()]),
    seed=st.integers(0, 999),
)
def test_seeking_in_any_order_equals_a_plain_fold(lengths, rule, seed, often_remembered):
    arrivals = [Arrival.from_lengths(f"r{i}", p, o, arrival_step=s) for i, (s, p, o) in enumerate(lengths)]
    trace = contiguous_trace(arrivals, 64, rule)
    pick = random.Random(seed)
    for step in [pick.randint(0, trace.num_steps) for _ in range(8)]:
        assert trace.at(step) == plain_fold([event for event in trace if event.step <= step])


def test_a_long_trace_is_sought_across_keyframes():
    trace = long_trace()
    assert len(trace) > 3 * KEYFRAME_EVERY
    last = trace.num_steps
    for step in (last, 0, last // 3, last // 2, last // 2 + 1, last - 1, last):
        assert trace.at(step) == plain_fold([event for event in trace if event.step <= step])


def test_seeking_while_the_trace_grows():
    whole, growing = long_trace(), Trace()
    for index, event in enumerate(whole):
        growing.append(event)
        if index % 337 == 0:
            assert growing.at(growing.num_steps) == plain_fold(whole.events[: index + 1])
    assert growing.at(100) == whole.at(100)


def test_the_state_handed_out_belongs_to_the_caller():
    trace = long_trace()
    step = next(event.step for event in trace.events[2 * KEYFRAME_EVERY :] if isinstance(event, SlotsWritten))
    mine = trace.at(step)
    mine.regions.clear()
    mine.arena[0] = None
    mine.counters.num_refused = 99
    for sequence in mine.sequences.values():
        sequence.token_ids.clear()
    for later in (step, step + 1):
        assert trace.at(later) == plain_fold([event for event in trace if event.step <= later])


# ---- files ----


@pytest.mark.parametrize("make", [Trace, paged_trace, long_trace])
def test_a_file_holds_the_whole_trace(make):
    trace = make()
    again = Trace.from_json(trace.to_json())
    assert again.events == trace.events
    assert (again.info, again.num_steps, again.step) == (trace.info, trace.num_steps, trace.num_steps)
    assert again.to_json() == trace.to_json()
    assert again.at(trace.num_steps) == trace.at(trace.num_steps)


@pytest.mark.parametrize("piece", ["日本語", "مرحبا", "👩‍👩‍👧‍👦", " \n\t", "<b>$5</b> **x**", "\x00\u2028"])
def test_text_of_every_kind_survives(piece):
    trace = Trace(info={"model": piece}, events=[RequestAdded(0, piece, (1,), (piece,), 3)])
    again = Trace.from_json(trace.to_json())
    assert again.info == {"model": piece}
    assert again.at(0).sequences[piece].pieces == [piece]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "This is not a trace file: it is not JSON ("),
        ("{", "This is not a trace file: it is not JSON ("),
        ("[" * 200_000, "This is not a trace file: it is not JSON ("),
        ("9" * 10_000, "This is not a trace file: it is not JSON ("),
        ("[]", "This is not a trace file of schema 1."),
        ("null", "This is not a trace file of schema 1."),
        ('{"events": []}', "This is not a trace file of schema 1."),
        ('{"schema": 2, "events": []}', "This is not a trace file of schema 1."),
        ('{"schema": 1}', "A trace file needs an `info` object and an `events` list."),
        ('{"schema": 1, "events": {}}', "A trace file needs an `info` object and an `events` list."),
        ('{"schema": 1, "events": [], "info": 5}', "A trace file needs an `info` object and an `events` list."),
        ('{"schema": 1, "events": [7]}', "Event 0: an event must be an object with a `type`."),
    ],
)
def test_an_invalid_trace_file_is_refused(text, sentence):
    assert SCHEMA_VERSION == 1
    with pytest.raises(TraceError) as error:
        Trace.from_json(text)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d["events"][1].pop("pieces"), "Event 1: RequestAdded lacks `pieces`."),
        (lambda d: d["events"][2].update(reason=7), "Event 2: RequestRefused.reason must be text"),
        (lambda d: d["events"][0].update(num_blocks="6"), "Event 0: PoolCreated.num_blocks must be a whole number"),
        (lambda d: d["events"][3].update(type="Nothing"), "Event 3: unknown event type 'Nothing'."),
        (lambda d: d["events"].insert(5, None), "Event 5: an event must be an object with a `type`."),
        (lambda d: d["events"][9].update(step=0), "Event 9: step 0 comes after step 1; steps never go back."),
        (lambda d: d["events"][0].update(step=-1), "Event 0: step -1 comes after step 0; steps never go back."),
    ],
)
def test_a_damaged_event_is_named_by_number_and_field(change, sentence):
    with pytest.raises(TraceError) as error:
        Trace.from_json(damaged(change))
    assert str(error.value).startswith(sentence)


def test_a_trace_that_contradicts_itself_is_refused():
    with pytest.raises(TraceError) as error:
        Trace.from_json(damaged(lambda d: d["events"].pop(1)))
    assert str(error.value).startswith("This trace contradicts itself: ")
    assert "SequenceScheduled" in str(error.value) or "PrefixQueried" in str(error.value)


SCRAPS: list[Any] = [None, -1, 0, 1, 10**6, 2**63, "", "A", [], [0], [-1], [1, 2, 3], {}, True, 1e300]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), source=st.sampled_from([paged_trace, replayed_trace]))
def test_any_damage_is_either_harmless_or_refused(data, source):
    document = json.loads(source().to_json())
    events = document["events"]
    for _ in range(data.draw(st.integers(1, 2))):
        index = data.draw(st.integers(0, len(events) - 1))
        field = data.draw(st.sampled_from([*events[index], "drop", "twice"]))
        if field == "drop":
            del events[index]
        elif field == "twice":
            events.insert(index, dict(events[index]))
        else:
            events[index][field] = data.draw(st.sampled_from(SCRAPS))
    try:
        trace = Trace.from_json(json.dumps(document))
    except TraceError as error:
        assert len(str(error)) < 400
    else:
        assert len(trace) == len(events)


# ---- hostile sizes ----


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (PoolCreated(0, 1, 2**40, 0, (0,)), "a pool must have 1 to"),
        (PoolCreated(0, 1, 1, 2**40, (0,)), "swap space is at most as large as the pool"),
        (PoolCreated(0, 2**40, 1, 0, (0,)), "a pool must have 1 to"),
        (ArenaCreated(0, 2**40, "buddy", "Max"), "an arena must have 1 to"),
    ],
)
def test_a_file_cannot_claim_unbounded_memory(event, reason):
    with pytest.raises(TraceError, match=reason):
        Trace.from_json(Trace(events=[event]).to_json())


@pytest.mark.parametrize("step", [2 * MAX_STEPS, 2**63])
def test_a_file_cannot_claim_unbounded_steps(step):
    document = json.loads(paged_trace().to_json())
    document["events"][-1]["step"] = step
    with pytest.raises(TraceError, match=f"^Event {len(document['events']) - 1}: step {step} is beyond"):
        Trace.from_json(json.dumps(document))


def test_a_run_goes_on_beyond_the_bound_on_files_and_can_be_read_again():
    engine = hash_engine(EngineConfig())
    engine.trace.step = MAX_STEPS - 1
    engine.step()
    engine.step()
    assert engine.trace.num_steps == MAX_STEPS + 1
    assert Trace.from_json(engine.trace.to_json()).events == engine.trace.events


class ReadMeanwhile(int):
    """Compared with a keyframe, it lets another reader add one."""

    trace: Trace

    def __ge__(self, other):
        self.trace._keyframes[len(self.trace._keyframes) * 7919] = CacheState()
        return super().__ge__(other)


def test_two_readers_may_seek_at_once():
    trace = long_trace()
    trace.at(trace.num_steps)
    end = ReadMeanwhile(2 * KEYFRAME_EVERY)
    end.trace = trace
    assert 0 < trace._nearest_keyframe(end)[0] <= 2 * KEYFRAME_EVERY


def test_fields_that_are_not_known_are_left_out_and_named_once():
    document = json.loads(paged_trace().to_json()) | {"comment": "mine"}
    for event in document["events"][:3]:
        event["shelf"] = 1
    kinds = dict.fromkeys(event["type"] for event in document["events"][:3])
    trace = Trace.from_json(json.dumps(document))
    assert trace.unknown_fields == ["comment", *(f"{kind}.shelf" for kind in kinds)]
    assert trace.copy().unknown_fields == trace.unknown_fields
    again = Trace.from_json(trace.to_json())
    assert again == trace and again.unknown_fields == []


def test_the_number_of_unknown_fields_kept_is_limited():
    document = json.loads(paged_trace().to_json()) | {f"field {i}": i for i in range(10 * MAX_UNKNOWN_FIELDS)}
    assert Trace.from_json(json.dumps(document)).unknown_fields == [f"field {i}" for i in range(MAX_UNKNOWN_FIELDS)]


def test_a_small_file_of_many_idle_steps_over_a_large_memory_is_read_at_once():
    """Remembering a state every few steps would copy 4 million slots 15,000 times."""
    events = [PoolCreated(0, 1, 2**22, 0, (0,)), StepCompleted(MAX_STEPS, 0, 0, 0, 0.0)]
    started = time.process_time()
    trace = Trace.from_json(Trace(events=events).to_json())
    assert trace.num_steps == MAX_STEPS
    assert time.process_time() - started < 5


def test_a_file_has_one_memory():
    events: list[Event] = [ArenaCreated(0, 8, "buddy", "Max"), ArenaCreated(0, 8, "buddy", "Max")]
    with pytest.raises(TraceError, match="a trace has one memory"):
        Trace.from_json(Trace(events=events).to_json())
