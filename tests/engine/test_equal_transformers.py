"""The embedded model through our engine writes what transformers writes, whatever happens to its memory."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.trace.events import BlockCopied, BlockSwappedIn, RequestPreempted, SequenceScheduled
from tests.helpers.models import loaded
from tests.helpers.transformers_text import (
    NUM_TOKENS,
    beam_continuation,
    greedy_continuations,
    prompt_token_ids,
)

pytestmark = pytest.mark.embedded
PARAMS = SamplingParams(max_tokens=NUM_TOKENS, ignore_eos=True)
BASE = EngineConfig(
    dtype="float32", max_model_len=128, max_num_seqs=20, max_num_batched_tokens=256, num_blocks=160, block_size=16
)


@dataclass(frozen=True)
class Case:
    name: str
    config: EngineConfig
    shuffle_every: int = 0
    preemption: str = ""


CASES = (
    Case("block 16, prefix caching, one batch", BASE),
    Case(
        "block 1, no prefix caching, prefill in chunks of 7",
        replace(BASE, block_size=1, num_blocks=2400, enable_prefix_caching=False, long_prefill_token_threshold=7),
    ),
    Case(
        "block 5, too few blocks: recompute",
        replace(BASE, block_size=5, num_blocks=220, long_prefill_token_threshold=7),
        preemption="recompute",
    ),
    Case(
        "block 5, too few blocks: swap",
        replace(BASE, block_size=5, num_blocks=220, num_cpu_blocks=220, preemption_mode="swap"),
        preemption="swap",
    ),
    Case("block 16, physical blocks shuffled every 9 steps", BASE, shuffle_every=9),
)


def engine_for(config: EngineConfig) -> Engine:
    return Engine(config, build_components(config, loaded(dtype="float32")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.first_case
def test_greedy_equals_generate(case: Case) -> None:
    engine = engine_for(case.config)
    shuffler = random.Random(0)
    for token_ids in prompt_token_ids():
        engine.add_request(token_ids, PARAMS)
    names = list(engine.snapshot().requests)
    while engine.has_unfinished_requests():
        engine.step()
        if case.shuffle_every and engine.trace.step % case.shuffle_every == 0:
            permutation = list(range(case.config.num_blocks))
            shuffler.shuffle(permutation)
            engine.shuffle_blocks(permutation)
    engine.check_invariants()
    written = [engine.output(name).outputs[0].token_ids for name in names]
    assert written == list(greedy_continuations())
    _assert_the_case_happened(case, engine)


def _assert_the_case_happened(case: Case, engine: Engine) -> None:
    """A case that forces nothing proves nothing: look for it in the log."""
    modes = {event.mode for event in engine.trace if isinstance(event, RequestPreempted)}
    assert modes == ({case.preemption} if case.preemption else set())
    assert any(isinstance(event, BlockSwappedIn) for event in engine.trace) == (case.preemption == "swap")
    prefill = [e.num_new_tokens for e in engine.trace if isinstance(e, SequenceScheduled) and e.start == 0]
    threshold = case.config.long_prefill_token_threshold
    assert max(prefill) == (threshold or max(map(len, prompt_token_ids())))


BEAM_PROMPTS = (
    "The red fox",
    "The capital of France is",
    "Once upon a time",
    "Water boils at",
    "What is a cat? A cat is",
)


@pytest.mark.slow
def test_beam_search_equals_generate_with_four_beams() -> None:
    config = replace(BASE, block_size=5, num_blocks=120)
    engine = engine_for(config)
    token_ids = [engine.tokenizer.encode(prompt) for prompt in BEAM_PROMPTS]
    outputs = engine.generate(token_ids, SamplingParams(beam_width=4, max_tokens=24))
    engine.check_invariants()
    assert [o.outputs[0].token_ids for o in outputs] == [beam_continuation(ids, 4, 24) for ids in token_ids]
    assert any(isinstance(event, BlockCopied) for event in engine.trace)


@pytest.mark.slow
def test_parallel_samples_are_equal_with_fork_and_prefix_cache() -> None:
    """Seeded samples do not depend on how their blocks are shared."""
    params = SamplingParams(n=3, temperature=0.8, top_p=0.9, seed=7, max_tokens=20, ignore_eos=True)
    texts = []
    for way in ("fork", "prefix_cache"):
        engine = engine_for(replace(BASE, block_size=4, parallel_sampling=way))
        output = engine.generate(["The crowd crossed the"], params)[0]
        engine.check_invariants()
        texts.append([sample.text for sample in output.outputs])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 3
