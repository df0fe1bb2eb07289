"""Bugs that were reported of vLLM, nano-vllm and mini-sglang, each as the small input it was reduced to.

A test's name has the project and the number of its issue. Those inside a kernel (NaN tails, int32 overflow, odd head
sizes and groups, slot -1, swap in place) are in tests/kernels; each one here runs the engine on a model whose next
token is a hash of what it reads through the block table, so wrong memory is wrong text.
"""

from __future__ import annotations

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from engine.trace.events import (
    BlockCopied,
    BlockFreed,
    BlockShared,
    BlockStored,
    PrefixQueried,
    RequestPreempted,
    SequenceScheduled,
    SlotsWritten,
    TokenSampled,
)
from tests.helpers.hash_model import greedy_continuation, hash_engine

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]


def run(engine: Engine) -> None:
    while engine.has_unfinished_requests():
        engine.step()
        engine.check_invariants()


def tokens_of(engine: Engine, request_id: str) -> list[list[int]]:
    return [list(sample.token_ids) for sample in engine.output(request_id).outputs]


def test_vllm_11186_a_full_hit_is_capped_and_stays_aligned():
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=16))
    for name in ("first", "second"):
        engine.add_request(EIGHT, SamplingParams(max_tokens=9), name)
        run(engine)
    hits = [e.num_hit_tokens for e in engine.trace if isinstance(e, PrefixQueried)]
    assert hits == [0, 4]
    stored = [e for e in engine.trace if isinstance(e, BlockStored) and e.seq_id == "second"]
    first = [e for e in engine.trace if isinstance(e, BlockStored) and e.seq_id == "first"]
    assert [e.block_hash for e in stored] == [e.block_hash for e in first[1:]], "the hash chain is whole"
    assert tokens_of(engine, "second") == tokens_of(engine, "first") == [greedy_continuation(EIGHT, 9)]


def test_nano_vllm_144_117_a_fully_cached_prompt_still_runs_a_query_token():
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=16))
    for name in ("first", "second", "third"):
        engine.add_request(EIGHT, SamplingParams(max_tokens=2), name)
        run(engine)
    assert min(e.num_new_tokens for e in engine.trace if isinstance(e, SequenceScheduled)) == 1
    starts = [e for e in engine.trace if isinstance(e, SequenceScheduled) and e.start == 4]
    assert [(e.seq_id, e.num_new_tokens) for e in starts] == [("second", 4), ("third", 4)]


def test_nano_vllm_211_233_a_resumed_request_matches_first_and_counts_after():
    """Preempt at length 9 and resume: cached blocks count as computed once, the table does not overrun."""
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=8))
    engine.add_request(EIGHT[:5], SamplingParams(max_tokens=10), "A")
    while engine.snapshot().sequences["A"].num_tokens < 9:
        engine.step()
    engine.preempt_request("A")
    engine.check_invariants()
    engine.step()
    engine.check_invariants()
    state = engine.snapshot()
    assert state.sequences["A"].num_computed_tokens == 9
    assert len(state.sequences["A"].block_table) == 3
    assert (state.counters.recompute_queries, state.counters.recompute_hits) == (9, 8)
    assert (state.counters.prefix_cache_queries, state.counters.prefix_cache_hits) == (5, 0)
    run(engine)
    assert tokens_of(engine, "A") == [greedy_continuation(EIGHT[:5], 10)]


@pytest.mark.parametrize("mode", ["recompute", "swap"])
def test_nano_vllm_217_the_last_chunk_of_a_re_prefill_samples_and_appends(mode):
    engine = hash_engine(
        EngineConfig(
            block_size=4,
            num_blocks=8,
            enable_prefix_caching=False,
            preemption_mode=mode,
            num_cpu_blocks=8 if mode == "swap" else 0,
            long_prefill_token_threshold=2,
        )
    )
    engine.add_request(EIGHT[:3], SamplingParams(max_tokens=6), "A")
    while engine.snapshot().sequences["A"].num_tokens < 5:
        engine.step()
    engine.preempt_request("A")
    run(engine)
    assert [e.mode for e in engine.trace if isinstance(e, RequestPreempted)] == [mode]
    assert [e.position for e in engine.trace if isinstance(e, TokenSampled)] == [3, 4, 5, 6, 7, 8]
    assert tokens_of(engine, "A") == [greedy_continuation(EIGHT[:3], 6)]


def test_vllm_35541_39734_a_request_larger_than_the_pool_is_refused_and_the_others_served():
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=4))
    outputs = engine.generate([[1] * 20, [1, 2, 3]], SamplingParams(max_tokens=4))
    assert outputs[0].error == (
        "It may need 6 blocks of 4; the pool has 4. Ask for fewer tokens or samples, or make the pool larger."
    )
    assert list(outputs[1].outputs[0].token_ids) == greedy_continuation([1, 2, 3], 4)


def test_mini_sglang_vllm_16157_a_length_limit_inside_a_block_stops_there():
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=8, max_model_len=10))
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=50), "A")
    run(engine)
    output = engine.output("A").outputs[0]
    assert list(output.token_ids) == greedy_continuation([1, 2, 3], 7)
    assert output.finish_reason == "length"
    assert max(e.start + len(e.slots) for e in engine.trace if isinstance(e, SlotsWritten)) == 9
    assert max(e.logical_index for e in engine.trace if isinstance(e, BlockFreed)) == 2


def test_vllm_9643_equal_prompts_in_one_step_get_two_copies_and_share_later():
    """Defined: a block is findable once computed, so prompts of one step do not share; a later one does."""
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=16))
    for name in ("A", "B"):
        engine.add_request(EIGHT, SamplingParams(max_tokens=3), name)
    engine.step()
    assert engine.snapshot().sequences["A"].block_table == [0, 1]
    assert engine.snapshot().sequences["B"].block_table == [2, 3]
    engine.add_request(EIGHT, SamplingParams(max_tokens=3), "C")
    run(engine)
    shared = [(e.seq_id, e.block_id) for e in engine.trace if isinstance(e, BlockShared)]
    assert shared == [("C", 0)]
    assert tokens_of(engine, "A") == tokens_of(engine, "B") == tokens_of(engine, "C")


def test_vllm_417_samples_fork_only_from_their_own_prompt():
    """Two prompts, n = 2, half-filled blocks: each pair copies its own tail, and the texts are right."""
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=16))
    params = SamplingParams(n=2, max_tokens=5, temperature=5.0, seed=3)
    prompts = {"A": EIGHT[:6], "B": EIGHT[2:7]}
    for name, prompt in prompts.items():
        engine.add_request(prompt, params, name)
    run(engine)
    copies = [
        (e.seq_id, e.logical_index, e.num_slots, e.src_ref_cnt) for e in engine.trace if isinstance(e, BlockCopied)
    ]
    assert copies == [("A", 1, 2, 1), ("B", 1, 1, 1)]
    for name, prompt in prompts.items():
        alone = hash_engine(EngineConfig(block_size=64, num_blocks=4, enable_prefix_caching=False))
        alone.add_request(prompt, params, name)
        run(alone)
        assert tokens_of(engine, name) == tokens_of(alone, name)
        assert tokens_of(engine, name)[0] != tokens_of(engine, name)[1]


@pytest.mark.parametrize("prompt", [[], ""])
def test_vllm_7632_an_empty_prompt_is_refused_alone(prompt):
    engine = hash_engine(EngineConfig(block_size=4, num_blocks=4))
    engine.add_request([1, 2], SamplingParams(max_tokens=2), "A")
    with pytest.raises(RequestRefusedError, match="The prompt is empty: at least 1 token is needed"):
        engine.add_request(prompt)
    run(engine)
    assert tokens_of(engine, "A") == [greedy_continuation([1, 2], 2)]


@pytest.mark.parametrize("block_size", [1, 2, 3, 16, 255, 256])
def test_vllm_42510_advertised_block_sizes_work(block_size):
    engine = hash_engine(EngineConfig(block_size=block_size, num_blocks=64))
    engine.add_request(EIGHT, SamplingParams(max_tokens=12), "A")
    run(engine)
    assert tokens_of(engine, "A") == [greedy_continuation(EIGHT, 12)]
