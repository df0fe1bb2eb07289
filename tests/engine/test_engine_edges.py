"""Robust edges: what is refused and with which sentence, every abort, every limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from engine.config import ConfigError
from engine.trace.events import AdmissionDeferred, BlockFreed, RequestFinished, RequestPreempted, RequestRefused
from tests.helpers.hash_model import VOCAB_SIZE, greedy_continuation, hash_engine

SMALL = EngineConfig(block_size=4, num_blocks=8, max_num_seqs=4, max_num_batched_tokens=16, max_model_len=32)


def finish(engine: Engine) -> None:
    while engine.has_unfinished_requests():
        engine.step()
        engine.check_invariants()


@pytest.mark.parametrize(
    ("prompt", "params", "sentence"),
    [
        ([VOCAB_SIZE], SamplingParams(), "Token id 64 is outside the vocabulary of 0 to 63."),
        ([-1], SamplingParams(), "Token id -1 is outside the vocabulary of 0 to 63."),
        ([1] * 32, SamplingParams(), "The prompt has 32 tokens; with max_model_len 32 it may have at most 31."),
        ([1], SamplingParams(n=5), "n is 5; max_num_seqs allows 4 sequences at once."),
        ([1], SamplingParams(beam_width=5), "beam_width is 5; max_num_seqs allows 4 sequences at once."),
        (
            [1] * 20,
            SamplingParams(n=4, max_tokens=12),
            "It may need 17 blocks of 4; the pool has 8. Ask for fewer tokens or samples, or make the pool larger.",
        ),
    ],
)
def test_a_request_that_cannot_run_is_refused_with_its_limit(prompt, params, sentence):
    engine = hash_engine(SMALL)
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=3), "good")
    with pytest.raises(RequestRefusedError) as refusal:
        engine.add_request(prompt, params, "bad")
    assert str(refusal.value) == sentence
    assert [e.reason for e in engine.trace if isinstance(e, RequestRefused)] == [sentence]
    finish(engine)
    assert list(engine.output("good").outputs[0].token_ids) == greedy_continuation([1, 2, 3], 3)


def test_a_taken_id_is_refused_and_its_owner_untouched():
    engine = hash_engine(SMALL)
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=3), "A")
    engine.step()
    with pytest.raises(RequestRefusedError, match="Request id 'A' is taken; choose another"):
        engine.add_request([4], request_id="A")
    assert engine.snapshot().requests["A"].status == "running"
    finish(engine)
    assert list(engine.output("A").outputs[0].token_ids) == greedy_continuation([1, 2, 3], 3)


@pytest.mark.parametrize("request_id", ["", "a#1", "x" * 65])
def test_ambiguous_request_ids_are_refused(request_id):
    with pytest.raises(RequestRefusedError, match="A request id has 1 to 64 characters and no '#'"):
        hash_engine(SMALL).add_request([1], request_id=request_id)


def test_automatic_ids_are_letters_and_skip_refused_ones():
    engine = hash_engine(SMALL)
    outputs = engine.generate([[1], [], [2]], SamplingParams(max_tokens=1))
    assert [o.request_id for o in outputs] == ["A", "B", "C"]
    assert outputs[1].error == "The prompt is empty: at least 1 token is needed."


@pytest.mark.parametrize("state", ["waiting", "running", "prefilling", "preempted", "swapped", "finished"])
def test_abort_frees_every_block_in_every_state(state):
    config = EngineConfig(
        block_size=2,
        num_blocks=8,
        max_num_batched_tokens=8,
        long_prefill_token_threshold=3,
        preemption_mode="swap" if state == "swapped" else "recompute",
        num_cpu_blocks=8 if state == "swapped" else 0,
    )
    engine = hash_engine(config)
    engine.add_request([1, 2, 3, 4, 5], SamplingParams(max_tokens=1 if state == "finished" else 4, n=1), "A")
    steps = {"waiting": 0, "prefilling": 1}.get(state, 2)
    for _ in range(steps):
        engine.step()
    if state in ("preempted", "swapped"):
        engine.preempt_request("A")
    status = engine.snapshot().requests["A"].status
    assert status == ("running" if state == "prefilling" else state)
    engine.abort_request("A")
    engine.abort_request("A")
    engine.abort_request("nobody")
    engine.check_invariants()
    assert engine.kv.pool.num_free_blocks == 8
    assert engine.kv.swap_space.num_free_blocks == config.num_cpu_blocks
    assert not engine.has_unfinished_requests()
    reasons = [e.reason for e in engine.trace if isinstance(e, RequestFinished)]
    assert reasons == ["length" if state == "finished" else "abort"]


def test_aborting_one_of_two_sharing_requests_keeps_the_other():
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=16))
    engine.add_request([1, 2, 3, 4, 5, 6], SamplingParams(max_tokens=8), "A")
    for _ in range(3):
        engine.step()
    fork = engine.fork_request("A")
    engine.abort_request("A")
    finish(engine)
    assert list(engine.output(fork).outputs[0].token_ids) == greedy_continuation([1, 2, 3, 4, 5, 6], 8)


@pytest.mark.parametrize(("prompt_length", "num_steps"), [(4, 1), (3, 2)])
def test_a_stop_at_a_block_boundary_allocates_no_further_block(prompt_length, num_steps):
    """The last token's keys and values are never written: 4 written tokens are 1 block of 4."""
    engine = hash_engine(SMALL)
    engine.add_request([1] * prompt_length, SamplingParams(max_tokens=num_steps), "A")
    finish(engine)
    assert [e.block_id for e in engine.trace if isinstance(e, BlockFreed)] == [0]
    assert engine.trace.num_steps == num_steps


def test_a_pool_of_one_block_serves_requests_one_after_another():
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=1))
    outputs = engine.generate([[1, 2], [3, 4]], SamplingParams(max_tokens=3))
    assert [list(o.outputs[0].token_ids) for o in outputs] == [
        greedy_continuation([1, 2], 3),
        greedy_continuation([3, 4], 3),
    ]
    deferred = [e.reason for e in engine.trace if isinstance(e, AdmissionDeferred)]
    assert deferred == ["it needs 1 free block, 0 free."]


@pytest.mark.parametrize("parallel_sampling", ["fork", "prefix_cache"])
@pytest.mark.parametrize("params", [{"n": 1}, {"n": 2}, {"beam_width": 2}, {"beam_width": 3, "n": 2}], ids=str)
def test_max_tokens_zero_computes_and_caches_the_prompt_and_generates_nothing(params, parallel_sampling):
    engine = hash_engine(replace(SMALL, parallel_sampling=parallel_sampling))
    output = engine.generate([[1, 2, 3, 4, 5]], SamplingParams(max_tokens=0, **params))[0]
    outputs = [(sample.token_ids, sample.text, sample.finish_reason) for sample in output.outputs]
    assert outputs == [((), "", "length")] * params.get("n", 1)
    assert output.finished and engine.kv.pool.num_free_blocks == SMALL.num_blocks
    state = engine.snapshot()
    assert [block.block_id for block in state.blocks if block.status == "cached"] == [0]
    assert state.counters.num_scheduled_tokens == 5


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"block_size": 0}, "block_size must be a whole number from 1 to 256; it is 0."),
        ({"block_size": 257}, "block_size must be a whole number from 1 to 256; it is 257."),
        ({"num_blocks": 0}, "num_blocks must be a whole number of at least 1; it is 0."),
        ({"num_blocks": 4, "num_cpu_blocks": 5}, "num_cpu_blocks must be a whole number from 0 to 4; it is 5."),
        (
            {"max_num_seqs": 9, "max_num_batched_tokens": 8},
            "max_num_batched_tokens (8) must be at least max_num_seqs (9): every running sequence needs one token "
            "a step.",
        ),
        (
            {"preemption_mode": "swap"},
            "preemption_mode 'swap' needs num_cpu_blocks of at least 1: the blocks are swapped to CPU memory.",
        ),
        (
            {"attention_backend": "cuda"},
            "attention_backend must be one of auto, triton, cpu, reference; it is 'cuda'.",
        ),
    ],
)
def test_invalid_settings_are_refused_with_a_reason(settings, sentence):
    with pytest.raises(ConfigError) as error:
        EngineConfig(**settings)
    assert str(error.value) == sentence


def test_no_request_is_admitted_while_a_swapped_one_is_unfinished():
    """Paper section 4.5."""
    engine = hash_engine(EngineConfig(block_size=2, num_blocks=8, preemption_mode="swap", num_cpu_blocks=8))
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=6), "A")
    engine.step()
    engine.preempt_request("A")
    engine.add_request([4, 5], SamplingParams(max_tokens=2), "B")
    engine.step()
    state = engine.snapshot()
    assert (state.requests["A"].status, state.requests["B"].status) == ("running", "waiting")
    assert state.requests["B"].reason == "swapped requests finish first (A)."
    finish(engine)
    assert list(engine.output("B").outputs[0].token_ids) == greedy_continuation([4, 5], 2)


def test_the_latest_arrival_is_preempted_first_and_resumes():
    engine = hash_engine(EngineConfig(block_size=2, num_blocks=6, enable_prefix_caching=False))
    for name in ("A", "B", "C"):
        engine.add_request([1, 2, 3], SamplingParams(max_tokens=4), name)
    finish(engine)
    preempted = [e.request_id for e in engine.trace if isinstance(e, RequestPreempted)]
    assert preempted == ["C"]
    for name in ("A", "B", "C"):
        assert list(engine.output(name).outputs[0].token_ids) == greedy_continuation([1, 2, 3], 4)


@pytest.mark.parametrize("first_token", range(8))
def test_beams_swapped_out_before_all_are_computed_again_do_not_wait_for_each_other(first_token):
    """Preempted by recompute (swap space is too small for three beams), then by swap while one beam alone is back."""
    engine = hash_engine(
        EngineConfig(
            block_size=5,
            num_blocks=12,
            preemption_mode="swap",
            num_cpu_blocks=2,
            long_prefill_token_threshold=3,
            parallel_sampling="prefix_cache",
        )
    )
    engine.add_request([first_token, 1, 2, 3, 0, 2, 1], SamplingParams(beam_width=3, max_tokens=12), "A")
    for _ in range(10):
        engine.step()
    engine.preempt_request("A")
    engine.clear_prefix_cache()
    for _ in range(3):
        engine.step()
    engine.preempt_request("A")
    engine.clear_prefix_cache()
    modes = [e.mode for e in engine.trace if isinstance(e, RequestPreempted)]
    assert modes == ["recompute", "swap"]
    for _ in range(60):
        engine.step()
        engine.check_invariants()
    assert not engine.has_unfinished_requests()


def test_two_samples_sharing_a_partial_block_resume_in_a_pool_that_just_fits():
    """Two holders need one copy, not two: asking for three of two blocks would wait for ever."""
    engine = hash_engine(
        EngineConfig(block_size=5, num_blocks=2, max_num_seqs=3, preemption_mode="swap", num_cpu_blocks=1)
    )
    engine.add_request([1], SamplingParams(n=2, max_tokens=4), "A")
    engine.step()
    engine.preempt_request("A")
    for _ in range(6):
        engine.step()
        engine.check_invariants()
    assert [list(sample.token_ids) for sample in engine.output("A").outputs] == [greedy_continuation([1], 4)] * 2
    assert not engine.has_unfinished_requests()


def test_one_concurrent_sequence_is_worded_in_the_singular():
    with pytest.raises(RequestRefusedError, match=r"^n is 2; max_num_seqs allows 1 sequence at once\.$"):
        hash_engine(EngineConfig(max_num_seqs=1)).add_request([1], SamplingParams(n=2))
