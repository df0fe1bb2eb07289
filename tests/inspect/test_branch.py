"""The past is repeated, the future is another one, and the words go on as they did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine import Engine, EngineConfig, SamplingParams, Trace
from engine.components import EngineComponents
from engine.inspect.branch import branch_at, past_of
from engine.outputs import RequestOutput
from engine.trace.events import PoolCreated, RequestRefused, SequenceScheduled
from tests.helpers.hash_model import hash_engine

CONFIG = EngineConfig(block_size=4, num_blocks=40, max_num_seqs=6, max_model_len=64)


def make_components(config: EngineConfig) -> EngineComponents:
    return hash_engine(config).components


def busy_engine() -> Engine:
    """Two samples, beams, a late arrival, a fork, an abort and a shuffle: 20 steps or so."""
    engine = Engine(CONFIG, make_components(CONFIG))
    engine.add_request([1, 2, 3, 4, 5, 6], SamplingParams(max_tokens=14, n=2, temperature=1.0))
    engine.add_request([3, 2, 1], SamplingParams(max_tokens=9, beam_width=2))
    while engine.has_unfinished_requests():
        engine.step()
        if engine.trace.step == 5:
            engine.add_request([9, 8, 7, 6, 5], SamplingParams(max_tokens=12, temperature=1.0))
            engine.shuffle_blocks([*range(1, 40), 0])
        if engine.trace.step == 8:
            engine.fork_request("C", seed=77)
        if engine.trace.step == 11:
            engine.abort_request("D")
            engine.preempt_request("A")
    return engine


def tokens(trace: Trace, *requests: str) -> dict[str, list[int]]:
    state = trace.at(trace.num_steps)
    return {s.seq_id: s.token_ids for s in state.sequences.values() if s.request_id in requests}


@pytest.fixture(autouse=True)
def check_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine of these tests keeps every rule after each of its steps."""
    step = Engine.step

    def step_and_check(engine: Engine) -> list[RequestOutput]:
        outputs = step(engine)
        engine.check_invariants()
        return outputs

    monkeypatch.setattr(Engine, "step", step_and_check)


@pytest.mark.parametrize("at_step", [0, 1, 4, 5, 8, 11, 13, 15])
@pytest.mark.parametrize("change", [{"block_size": 3}, {"num_blocks": 22}, {"enable_prefix_caching": False}])
def test_a_branch_continues_the_text_under_other_memory_settings(at_step: int, change: dict[str, Any]) -> None:
    engine = busy_engine()
    branch = branch_at(past_of(engine), make_components, at_step, replace(CONFIG, **change))
    assert branch.is_past_repeated and branch.is_complete
    old, new = tokens(branch.past, "A", "B", "C", "D"), tokens(branch.future, "A", "B", "C", "D")
    assert old["C"][:8] == old["D"][:8] and old["C"] != old["D"], "the fork goes its own way"
    assert new and all(old[seq_id] == token_ids for seq_id, token_ids in new.items())
    if at_step < 11:
        assert {"A", "A#1", "C"} <= set(new)
    assert branch.future.events_of(at_step)[0].step == at_step
    [pool] = [event for event in branch.future if isinstance(event, PoolCreated)]
    assert (pool.block_size, pool.num_blocks) == (change.get("block_size", 4), change.get("num_blocks", 40))
    assert Trace.from_json(branch.future.to_json()).events == branch.future.events


def test_known_tokens_are_recomputed_and_reported() -> None:
    without_cache = replace(CONFIG, block_size=8, enable_prefix_caching=False)
    branch = branch_at(past_of(busy_engine()), make_components, 4, without_cache)
    first = [e for e in branch.future.events_of(5) if isinstance(e, SequenceScheduled) and e.seq_id == "A"]
    # 6 prompt tokens and 3 of the 4 chosen ones were computed; the fourth runs for the first time.
    assert [(e.start, e.num_new_tokens, e.num_recomputed_tokens) for e in first] == [(0, 10, 9)]


def test_a_changed_past_is_reported() -> None:
    engine = busy_engine()
    engine.config = replace(CONFIG, block_size=5)
    assert not branch_at(past_of(engine), make_components, 6, CONFIG).is_past_repeated


def test_a_request_too_large_for_the_branch_is_refused_in_its_trace() -> None:
    branch = branch_at(past_of(busy_engine()), make_components, 2, replace(CONFIG, num_blocks=5))
    refused = [event.request_id for event in branch.future if isinstance(event, RequestRefused)]
    assert "A" in refused and branch.is_complete
    assert tokens(branch.future, "C") == tokens(branch.past, "C")


def test_steps_and_lengths_out_of_range() -> None:
    engine = busy_engine()
    with pytest.raises(IndexError, match="outside this trace"):
        branch_at(past_of(engine), make_components, 99, CONFIG)
    with pytest.raises(ValueError, match="max_model_len must be larger"):
        branch_at(past_of(engine), make_components, 4, replace(CONFIG, max_model_len=8))


def test_a_branch_point_is_unaffected_by_later_steps() -> None:
    engine = Engine(CONFIG, make_components(CONFIG))
    engine.add_request([1, 2, 3, 4, 5, 6], SamplingParams(max_tokens=14))
    for _ in range(5):
        engine.step()
    past = past_of(engine)
    engine.add_request([3, 2, 1], SamplingParams(max_tokens=9))
    engine.step()
    branch = branch_at(past, make_components, 5, CONFIG)
    assert branch.is_past_repeated
    assert (branch.past.num_steps, len(branch.past.at(5).requests)) == (5, 1)
    assert list(branch.future.at(branch.future.num_steps).requests) == ["A"]
