"""EngineSession: stepping by clicks and by a thread, commands and their replay, failures, and its end."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.weights.load import LoadedModel, load_model
from engine.outputs import RequestOutput
from engine.trace.usage import usage_of
from tests.helpers.waiting import until
from views.server.commands import AddRequest
from views.server.engine_session import EngineSession, _step_until_stopped
from views.server.sessions import SessionRegistry

ENDLESS = SamplingParams(max_tokens=400, ignore_eos=True)
SECONDS = 20.0
CLOCK = 0.002
"""How far a sleep and the clock it is measured by may differ."""


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny-random")


@pytest.fixture
def session(tiny: LoadedModel) -> EngineSession:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=120, max_model_len=480)
    return EngineSession(Engine(config, build_components(config, tiny)))


def test_a_step_requested_for_an_older_moment_does_nothing(session: EngineSession) -> None:
    session.add("abc", ENDLESS, as_chat=False)
    assert session.step(expected_step=0)
    assert not session.step(expected_step=0)
    assert session.moment.step == 1
    assert session.step(expected_step=1)


def test_a_moment_is_not_changed_by_later_steps(session: EngineSession) -> None:
    session.add("abc", ENDLESS, as_chat=False)
    session.step(0)
    before = session.moment
    session.step(1)
    assert (before.step, before.state.sequences["A"].num_tokens) == (1, 4)
    assert session.moment.state.sequences["A"].num_tokens == 5


def test_prompts_and_texts_are_kept_by_request_and_sequence(session: EngineSession) -> None:
    session.add("first", SamplingParams(max_tokens=3, n=2, temperature=1.0, ignore_eos=True), as_chat=False)
    session.add("second", ENDLESS, as_chat=False)
    session.step(0)
    assert session.moment.prompts == {"A": "first", "B": "second"}
    assert set(session.moment.texts) == {"A", "A#1", "B"}


def test_a_run_finishes_and_frees_the_blocks(session: EngineSession) -> None:
    session.add("abc", SamplingParams(max_tokens=9, ignore_eos=True), as_chat=False)
    session.run(0.0)
    until(lambda: not session.is_running)
    assert session.moment.step == 9
    assert not session.moment.has_unfinished
    assert usage_of(session.moment.state).num_used_blocks == 0


class WaitsNotedDown(threading.Event):
    """A stop that is requested after five waits; they take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        if len(self.waits) == 5:
            self.set()
        return self.is_set()


def test_the_pace_counts_from_start_to_start(session: EngineSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of 0.08 s leaves 0.02 s of 0.1 s; on a busy machine it takes longer and leaves less."""
    session.add("abc", ENDLESS, as_chat=False)
    step, stop = session.engine.step, WaitsNotedDown()

    def slow_step() -> list[RequestOutput]:
        time.sleep(0.08)
        return step()

    monkeypatch.setattr(session.engine, "step", slow_step)
    _step_until_stopped(weakref.ref(session), stop, 0.1)
    assert session.moment.step == 5
    assert len(stop.waits) == 5
    assert all(0 <= seconds <= 0.1 - 0.08 + CLOCK for seconds in stop.waits)


def test_stop_returns_at_once_and_no_step_follows_but_the_one_under_way(
    session: EngineSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, under_way = threading.Event(), threading.Event()
    session.add("abc", ENDLESS, as_chat=False)
    step = session.engine.step

    def held_step() -> list[RequestOutput]:
        under_way.set()
        gate.wait(SECONDS)
        return step()

    monkeypatch.setattr(session.engine, "step", held_step)
    session.run(0.0)
    assert under_way.wait(SECONDS)
    started = time.monotonic()
    session.stop()
    assert time.monotonic() - started < SECONDS / 2, "it did not wait for the step under way"
    assert not session.is_running
    gate.set()
    until(lambda: session.moment.step == 1)
    time.sleep(0.3)
    assert session.moment.step == 1
    assert session.step(1), "it can be stepped by hand again"


def test_reading_the_moment_does_not_wait_for_a_step(session: EngineSession, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    session.add("abc", ENDLESS, as_chat=False)
    monkeypatch.setattr(session.engine, "step", lambda: gate.wait(SECONDS) and [])
    thread = threading.Thread(target=session.step, args=(0,))
    thread.start()
    started = time.monotonic()
    assert session.moment.step == 0
    assert time.monotonic() - started < SECONDS / 2
    gate.set()
    thread.join()


def test_a_refusal_is_a_sentence_and_an_event(session: EngineSession) -> None:
    with pytest.raises(ValueError, match="The prompt is empty: at least 1 token is needed"):
        session.add("", ENDLESS, as_chat=False)
    assert session.moment.state.requests["A"].status == "refused"
    assert session.is_unused


def test_a_chat_is_refused_by_a_model_without_a_template(session: EngineSession) -> None:
    with pytest.raises(ValueError, match="no chat template"):
        session.add("hello", ENDLESS, as_chat=True)


def test_after_pause_the_next_step_is_the_one_that_the_page_offers(
    session: EngineSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = threading.Event()
    session.add("abc", ENDLESS, as_chat=False)
    step = session.engine.step

    def slow_step() -> list[RequestOutput]:
        under_way.set()
        time.sleep(0.1)
        return step()

    monkeypatch.setattr(session.engine, "step", slow_step)
    session.run(0.0)
    assert under_way.wait(SECONDS)
    session.pause()
    offered = session.moment.step
    assert offered == session.engine.trace.num_steps >= 1
    assert session.step(offered)


def test_a_step_that_fails_stops_the_engine_with_a_sentence(
    session: EngineSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.add("abc", ENDLESS, as_chat=False)
    session.step(0)

    def fail() -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(session.engine, "step", fail)
    session.run(0.0)
    until(lambda: not session.is_running)
    assert session.moment.problem.endswith("failed, so this engine has stopped. Press Reset to start a new one.")
    assert not session.step(session.moment.step)


def test_a_session_without_references_is_freed_while_it_runs(tiny: LoadedModel) -> None:
    engine, thread = _run_and_forget(tiny)
    thread.join(SECONDS)
    gc.collect()
    assert not thread.is_alive()
    assert engine() is None


def test_replayed_commands_reproduce_the_run(tiny: LoadedModel) -> None:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=30, max_model_len=200)
    first, second = (EngineSession(Engine(config, build_components(config, tiny))) for _ in range(2))
    warm = SamplingParams(temperature=1.2, max_tokens=30, seed=3, ignore_eos=True)
    first.add("abcdef", warm, as_chat=False)
    first.step(0)
    first.step(1)
    assert first.fork("A") == "B"
    with pytest.raises(ValueError, match="prompt is empty"):
        first.add("", warm, as_chat=False)
    assert first.add("other", warm, as_chat=False) == "D"
    for step in range(2, 8):
        first.step(step)
    first.abort("A")
    second.replay(first.moment.commands, first.moment.step)
    until(lambda: not second.is_running)
    ours, theirs = first.moment, second.moment
    assert (theirs.step, theirs.replay_until, theirs.pending) == (8, None, ())
    assert theirs.state == ours.state
    assert (theirs.texts, theirs.prompts, theirs.commands) == (ours.texts, ours.prompts, ours.commands)
    assert ours.prompts == {"A": "abcdef", "B": "abcdef", "D": "other"}
    assert (ours.state.requests["A"].status, ours.state.requests["C"].status) == ("finished", "refused")
    assert ours.texts["A"] != ours.texts["B"], "the fork goes on with a seed of its own"


def test_a_replay_can_be_stopped(session: EngineSession) -> None:
    session.replay([AddRequest(0, "abc", ENDLESS), AddRequest(399, "later", ENDLESS)], 400)
    until(lambda: session.moment.step >= 3)
    assert session.moment.replay_until == 400
    session.stop()
    until(lambda: session.moment.replay_until is None)
    stopped_at = session.moment.step
    assert 3 <= stopped_at < 399
    assert (list(session.moment.prompts), session.moment.pending) == (["A"], ())
    assert session.step(stopped_at), "it can be stepped by hand"


def test_hold_excludes_steps(session: EngineSession) -> None:
    session.add("abc", ENDLESS, as_chat=False)
    session.run(0.0)
    until(lambda: session.moment.step >= 2)
    with session.between_steps() as engine:
        step = engine.trace.step
        time.sleep(0.1)
        assert engine.trace.step == step
    until(lambda: session.moment.step > step)
    session.stop()


def _run_and_forget(tiny: LoadedModel) -> tuple[weakref.ref[object], threading.Thread]:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=120, max_model_len=480)
    session = EngineSession(Engine(config, build_components(config, tiny)))
    session.add("abc", ENDLESS, as_chat=False)
    session.run(0.02)
    until(lambda: session.moment.step >= 1)
    assert session._thread is not None
    return weakref.ref(session.engine), session._thread


def test_all_open_sessions_are_closed_together(tiny: LoadedModel) -> None:
    sessions = SessionRegistry()
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=120, max_model_len=480)
    kept = [EngineSession(Engine(config, build_components(config, tiny))) for _ in range(3)]
    for session in kept:
        sessions.add(session)
        session.add("abc", ENDLESS, as_chat=False)
        session.run(0.0)
    assert len(sessions) == 3
    assert sessions.find(kept[1].frames.trace_id) is kept[1]
    sessions.close_all()
    assert len(sessions) == 0
    assert sessions.find(kept[1].frames.trace_id) is None
    assert not any(session.is_running for session in kept)
