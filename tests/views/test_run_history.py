"""The live page's history of a run: each entry is the engine's own state after that step."""

from __future__ import annotations

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.trace.events import StepCompleted, TokenSampled
from engine.trace.usage import usage_of
from views.live.run_history import RunHistory, usage_line

PARAMS = SamplingParams(max_tokens=3)


@pytest.fixture
def engine() -> Engine:
    return Engine(EngineConfig(model="tiny-random", block_size=4, num_blocks=16))


def test_each_entry_is_the_state_after_its_step_however_often_it_is_read(engine: Engine) -> None:
    often = RunHistory()
    engine.add_request("abcdef", PARAMS)
    often.update(engine.trace)
    engine.add_request("xyz", PARAMS)
    states = [engine.snapshot()]
    while engine.has_unfinished_requests():
        engine.step()
        often.update(engine.trace)
        states.append(engine.snapshot())
    once = RunHistory()
    once.update(engine.trace)
    assert once.steps == often.steps
    assert [summary.usage for summary in once.steps] == [usage_of(state) for state in states]
    assert [summary.num_requests for summary in once.steps] == [2, 2, 2, 2]
    assert [summary.num_started for summary in once.steps] == [0, 2, 2, 2]
    assert [summary.num_output_tokens for summary in once.steps] == [0, 1, 2, 3]
    assert [summary.num_sampled for summary in once.steps] == [0, 2, 2, 2]


def test_tokens_a_second_are_those_chosen_over_the_engines_own_time(engine: Engine) -> None:
    engine.add_request("abcdef", PARAMS)
    history = RunHistory()
    history.update(engine.trace)
    assert history.tokens_per_second == 0
    engine.step()
    engine.step()
    history.update(engine.trace)
    elapsed_ms = sum(event.elapsed_ms for event in engine.trace if isinstance(event, StepCompleted))
    sampled = sum(isinstance(event, TokenSampled) for event in engine.trace)
    assert history.tokens_per_second == pytest.approx(1000 * sampled / elapsed_ms)
    assert f'data-figure="rate">{history.tokens_per_second:.0f}<' in usage_line(history)


def test_the_last_step_before_something_changes_is_found(engine: Engine) -> None:
    engine.add_request("abc", PARAMS)
    engine.step()
    engine.add_request("xyz", PARAMS)
    engine.step()
    engine.step()
    history = RunHistory()
    history.update(engine.trace)
    assert history.last_step_where(lambda summary: summary.num_requests <= 2) == 3
    assert history.last_step_where(lambda summary: summary.num_output_tokens <= 2) == 2
    assert history.last_step_where(lambda summary: summary.num_output_tokens < 0) == 0
