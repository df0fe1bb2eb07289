"""Everything accepted finishes: a whole group is counted before it starts or comes back, and steps bring tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from engine.kv_cache.invariants import InvariantError
from engine.sequence import Sequence
from engine.trace.events import (
    BlockShared,
    PrefixQueried,
    RequestAdmitted,
    RequestPreempted,
    SequenceScheduled,
    TokenSampled,
)
from tests.helpers.hash_model import greedy_continuation, hash_engine


def run(engine: Engine, max_steps: int = 200) -> None:
    for _ in range(max_steps):
        if not engine.has_unfinished_requests():
            return
        engine.step()
        engine.check_invariants()
    raise AssertionError("the engine does not finish")


def steps_of(engine: Engine, kind: type[RequestPreempted] | type[RequestAdmitted], request_id: str) -> list[int]:
    return [e.step for e in engine.trace if isinstance(e, kind) and e.request_id == request_id]


# -- samples that meet in the prefix cache, and swap --

SWAPPED_SAMPLES = EngineConfig(
    model="tiny-random",
    block_size=1,
    num_blocks=17,
    num_cpu_blocks=17,
    preemption_mode="swap",
    parallel_sampling="prefix_cache",
)


@pytest.mark.parametrize("make", [Engine, hash_engine], ids=["tiny-random", "hash"])
def test_samples_swapped_out_before_both_had_started_resume_and_finish(make):
    """The second sample starts in the step in which the first one's blocks return: it must share them."""
    engine = make(SWAPPED_SAMPLES)
    engine.add_request(list(range(20, 30)), SamplingParams(max_tokens=6, ignore_eos=True))
    params = SamplingParams(max_tokens=6, n=2, temperature=1.0, seed=1, ignore_eos=True)
    engine.add_request([1, 2, 3, 4, 5, 6], params)
    run(engine)
    assert [len(sample.token_ids) for sample in engine.output("B").outputs] == [6, 6]
    assert engine.kv.pool.num_free_blocks == 17


def test_blocks_are_cached_in_the_step_in_which_they_are_swapped_in():
    config = EngineConfig(block_size=2, num_blocks=8, preemption_mode="swap", num_cpu_blocks=8)
    engine = hash_engine(config)
    engine.add_request([1, 2, 3, 4, 5], SamplingParams(max_tokens=6), "A")
    engine.step()
    engine.preempt_request("A")
    engine.clear_prefix_cache()
    assert engine.kv.find_prefix(Sequence("B", 0, [1, 2, 3, 4, 6], 5)) == []
    engine.kv.swap_in(engine.scheduler.swapped[0].live_sequences)
    assert len(engine.kv.find_prefix(Sequence("B", 0, [1, 2, 3, 4, 6], 5))) == 2


@pytest.mark.parametrize("other", ["cleared", "copied"])
def test_a_sample_shares_its_siblings_blocks_with_any_prefix_cache_content(other):
    """Admission counts on it: a second copy of the prompt may not fit."""
    engine = hash_engine(EngineConfig(block_size=2, num_blocks=16, parallel_sampling="prefix_cache"))
    prompt = [1, 2, 3, 4, 5, 6, 7]
    if other == "copied":
        engine.add_request(prompt, SamplingParams(max_tokens=2), "copy")
    engine.add_request(prompt, SamplingParams(max_tokens=3, n=2), "A")
    engine.step()
    if other == "cleared":
        engine.clear_prefix_cache()
    engine.step()
    engine.check_invariants()
    tables = engine.kv.block_tables
    assert tables["A"][:3] == tables["A#1"][:3]
    cause = "sibling" if other == "cleared" else "prefix_cache"
    assert [e.cause for e in engine.trace if isinstance(e, BlockShared)] == [cause] * 3
    assert [e.num_hit_tokens for e in engine.trace if isinstance(e, PrefixQueried) and e.seq_id == "A#1"] == (
        [] if other == "cleared" else [6]
    )
    run(engine)
    assert [list(s.token_ids) for s in engine.output("A").outputs] == [greedy_continuation(prompt, 3)] * 2


# -- a group waits until all its sequences fit --

TIGHT = EngineConfig(model="tiny-random", block_size=4, num_blocks=40, max_model_len=400, max_num_batched_tokens=400)


@pytest.mark.parametrize(
    ("params", "preempted", "admitted"),
    [
        (SamplingParams(n=3, max_tokens=40), [8, 13], [1, 9, 21]),
        (SamplingParams(beam_width=3, max_tokens=40), [10], [1, 21]),
    ],
    ids=["samples", "beams"],
)
def test_a_preempted_group_is_not_admitted_and_preempted_again_in_every_step(params, preempted, admitted):
    """Greedy samples say the same: computed again they share what each had written, and run on from step 9 to 12."""
    engine = Engine(TIGHT)
    engine.add_request(list(range(10, 130)), SamplingParams(max_tokens=20))
    engine.add_request(list(range(50, 56)), params)
    run(engine)
    assert steps_of(engine, RequestPreempted, "B") == preempted
    assert steps_of(engine, RequestAdmitted, "B") == admitted
    tokens = {e.step: e.position for e in engine.trace if isinstance(e, TokenSampled) and e.seq_id == "B"}
    for came_back, made_room in zip(admitted[1:], preempted[1:], strict=False):
        assert [tokens[step] - tokens[came_back] for step in range(came_back, made_room)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "params"),
    [
        ({}, SamplingParams(n=3, max_tokens=40, temperature=1.0, seed=1, ignore_eos=True)),
        ({}, SamplingParams(beam_width=3, max_tokens=40, ignore_eos=True)),
        ({"parallel_sampling": "prefix_cache"}, SamplingParams(n=3, max_tokens=40, temperature=1.0, seed=1)),
        ({"enable_prefix_caching": False}, SamplingParams(n=3, max_tokens=40, temperature=1.0, seed=1)),
        ({"preemption_mode": "swap", "num_cpu_blocks": 40}, SamplingParams(n=3, max_tokens=40, temperature=1.0)),
    ],
    ids=["samples", "beams", "prefix_cache", "no cache", "swap"],
)
def test_a_preempted_group_waits_once(settings, params):
    engine = hash_engine(replace(TIGHT, **settings))
    engine.add_request([i % 60 for i in range(10, 130)], SamplingParams(max_tokens=20, ignore_eos=True), "A")
    engine.add_request(list(range(50, 56)), params, "B")
    run(engine)
    preempted, admitted = steps_of(engine, RequestPreempted, "B"), steps_of(engine, RequestAdmitted, "B")
    assert len(preempted) == 1
    assert admitted == [1, 21], "it comes back when A has ended, in step 20"


def test_a_group_preempted_while_it_is_scheduled_returns_its_tokens_to_the_budget():
    """Two samples need a block each and one is free: the first is in the batch when the second preempts them both."""
    engine = hash_engine(EngineConfig(block_size=2, num_blocks=6, max_num_batched_tokens=8))
    engine.add_request([1, 2], SamplingParams(max_tokens=5), "A")
    engine.add_request([4, 5, 6], SamplingParams(max_tokens=4, n=2, temperature=1.0, seed=1), "B")
    left = {}
    for step in range(1, 5):
        engine.step()
        num_tokens = sum(e.num_new_tokens for e in engine.trace if isinstance(e, SequenceScheduled) and e.step == step)
        left[step] = (num_tokens, engine.scheduler._budget)
    assert steps_of(engine, RequestPreempted, "B") == [3]
    assert left[3] == (1, 7), "only A's token is in the batch, so 7 of 8 are left"
    run(engine)


# -- who returns first --


@pytest.mark.parametrize("mode", ["recompute", "swap"])
@pytest.mark.parametrize("order", ["ABC", "CBA", "BCA"])
def test_preempted_requests_resume_in_order_of_arrival(mode, order):
    engine = hash_engine(EngineConfig(preemption_mode=mode, num_cpu_blocks=64 if mode == "swap" else 0))
    for name in "ABC":
        engine.add_request([1, 2, 3], SamplingParams(max_tokens=9), name)
    engine.step()
    for name in order:
        engine.preempt_request(name)
    engine.step()
    assert [e.request_id for e in engine.trace if isinstance(e, RequestAdmitted) and e.step == 2] == ["A", "B", "C"]


def test_a_recompute_preemption_resumes_before_a_later_swapped_request():
    """Swap space holds B and not A."""
    engine = hash_engine(EngineConfig(block_size=2, preemption_mode="swap", num_cpu_blocks=2))
    engine.add_request([1, 2, 3, 4, 5, 6], SamplingParams(max_tokens=9), "A")
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=9), "B")
    engine.step()
    engine.preempt_request("B")
    engine.preempt_request("A")
    engine.step()
    returned = [(e.request_id, e.queue) for e in engine.trace if isinstance(e, RequestAdmitted) and e.step == 2]
    assert returned == [("A", "preempted"), ("B", "swapped")]


# -- what can never fit --


@pytest.mark.parametrize(("way", "need"), [("fork", 2 + 3 * 2), ("prefix_cache", 1 + 3 * 3)])
def test_a_group_is_refused_when_the_pool_cannot_hold_it_alone_and_finishes_when_it_just_can(way, need):
    """A prompt of 2 blocks and 8 written tokens more, and 3 samples."""
    params = SamplingParams(max_tokens=9, n=3, temperature=1.0, seed=3)
    prompt = [1, 2, 3, 4, 5, 6, 7, 8]
    settings = {"block_size": 4, "max_num_seqs": 4, "parallel_sampling": way}
    with pytest.raises(RequestRefusedError, match=f"It may need {need} blocks of 4; the pool has {need - 1}"):
        hash_engine(EngineConfig(num_blocks=need - 1, **settings)).add_request(prompt, params)
    engine = hash_engine(EngineConfig(num_blocks=need, **settings))
    engine.add_request(prompt, params, "A")
    run(engine)
    assert [len(sample.token_ids) for sample in engine.output("A").outputs] == [9, 9, 9]
    assert steps_of(engine, RequestPreempted, "A") == []


# -- the bound --


@pytest.mark.parametrize(
    ("settings", "params", "steps"),
    [
        ({}, SamplingParams(), 3),
        ({"long_prefill_token_threshold": 3}, SamplingParams(), 9),
        ({"max_num_batched_tokens": 4, "max_num_seqs": 4}, SamplingParams(), 6),
        ({"parallel_sampling": "prefix_cache"}, SamplingParams(n=3), 9),
        ({}, SamplingParams(beam_width=3), 9),
    ],
)
def test_the_bound_is_three_times_the_chunks_of_the_largest_request(settings, params, steps):
    engine = hash_engine(EngineConfig(**settings))
    assert engine.scheduler.max_steps_to_next_token() == 0
    engine.add_request([1, 2, 3], SamplingParams())
    engine.add_request([1, 2, 3, 4, 5, 6, 7], params)
    assert engine.scheduler.max_steps_to_next_token() == steps


def test_steps_without_a_token_violate_the_named_invariant():
    engine = hash_engine(EngineConfig())
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=4))
    engine.scheduler.schedule = list  # type: ignore[method-assign]
    engine.step()
    engine.step()
    engine.check_invariants()
    engine.step()
    with pytest.raises(InvariantError, match="liveness: no request got a token in 3 steps; one should within 3"):
        engine.check_invariants()
