"""With `batch_invariant` a token's logits are the same bits in any company; without it they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from course.equation.experiment import RecordingRunner
from course.shuffle.experiment import moving_permutation
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components, check_batch_invariant_device
from engine.config import ConfigError
from engine.inspect.scratch import run_to_end
from engine.model import linear
from engine.model.linear import Bf16GemmLinear, has_int4_gemm
from engine.model.weights.embedded import EMBEDDED_MODEL
from engine.model.weights.load import LoadedModel, load_model
from engine.trace.events import RequestPreempted, SequenceScheduled
from tests.helpers.models import loaded, runs_bf16_gemm

PROMPT = "The quick brown fox jumps over the lazy dog, and then it sleeps for the rest of the day."
NEIGHBOURS = ("A blue whale", "One, two, three, four, five, six, seven, eight, nine", "Once upon a time")
GREEDY = SamplingParams(max_tokens=9, ignore_eos=True)
WIDE = EngineConfig(block_size=4, num_blocks=160, max_num_batched_tokens=512, max_num_seqs=4)


def tiny(backend: str) -> tuple[LoadedModel, EngineConfig]:
    return loaded("tiny-random"), replace(WIDE, model="tiny-random", attention_backend=backend)


def embedded(dtype: str) -> tuple[LoadedModel, EngineConfig]:
    return loaded(dtype=dtype), replace(WIDE, dtype=dtype)


def embedded_bf16(product: str) -> tuple[LoadedModel, EngineConfig]:
    """The embedded model in bfloat16, packed for our product or for torch's, whichever of them is faster here."""
    model = _packed_for(product)
    assert isinstance(model.model.layers[0].qkv, Bf16GemmLinear) == (product == "ours")
    return model, replace(WIDE, dtype="bfloat16")


@cache
def _packed_for(product: str) -> LoadedModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "has_bf16_gemm", lambda: product == "ours")
        return load_model(EMBEDDED_MODEL, dtype="bfloat16")


INT4 = pytest.mark.skipif(not has_int4_gemm(), reason="needs Numba and AVX-512 VNNI")
BF16 = pytest.mark.skipif(not runs_bf16_gemm(), reason="needs Numba and AVX-512 BF16")
EMBEDDED = [pytest.mark.embedded, pytest.mark.slow]
MODELS: list[Any] = [
    pytest.param(tiny, "cpu", id="tiny-cpu"),
    pytest.param(tiny, "reference", id="tiny-reference"),
    pytest.param(embedded, "int4", id="int4", marks=[*EMBEDDED, INT4]),
    pytest.param(embedded_bf16, "ours", id="bfloat16-ours", marks=[*EMBEDDED, BF16]),
    pytest.param(embedded_bf16, "torch", id="bfloat16-torch", marks=EMBEDDED),
]
models = pytest.mark.parametrize("make, kind", MODELS)
Make = Callable[[str], tuple[LoadedModel, EngineConfig]]


@pytest.fixture(autouse=True)
def one_thread_for_torch(request: pytest.FixtureRequest) -> Iterator[None]:
    """Its threads meet at the end of each of the 121 products of a row: on a busy machine that takes minutes."""
    num_threads = torch.get_num_threads()
    if "bfloat16-torch" in request.node.name:
        torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


class Watched:
    """An engine whose logits are kept, with one request in it whose logits are asked for."""

    def __init__(self, model: LoadedModel, config: EngineConfig, prompt: str = PROMPT) -> None:
        components = build_components(config, model)
        self.recorder = RecordingRunner(components.runner)
        self.engine = Engine(config, replace(components, runner=self.recorder))
        self.name = self.engine.add_request(prompt, GREEDY)

    def logits(self) -> Tensor:
        """Of every token of the reply: [max_tokens, vocab_size]."""
        assert run_to_end(self.engine)
        return torch.stack(self.recorder.rows[self.engine.output(self.name).outputs[0].seq_id])


def cut_into(size: int) -> Callable[[LoadedModel, EngineConfig], Tensor]:
    return lambda model, config: Watched(model, replace(config, long_prefill_token_threshold=size)).logits()


def among_others(model: LoadedModel, config: EngineConfig) -> Tensor:
    """Two come before it, and one later."""
    watched = Watched(model, config, NEIGHBOURS[0])
    watched.engine.add_request(NEIGHBOURS[1], GREEDY)
    watched.engine.step()
    watched.name = watched.engine.add_request(PROMPT, GREEDY)
    watched.engine.step()
    watched.engine.add_request(NEIGHBOURS[2], GREEDY)
    return watched.logits()


def preempted(**changed: Any) -> Callable[[LoadedModel, EngineConfig], Tensor]:
    def run(model: LoadedModel, config: EngineConfig) -> Tensor:
        watched = Watched(model, replace(config, **changed))
        run_to_end(watched.engine, 6)
        watched.engine.preempt_request(watched.name)
        logits = watched.logits()
        assert sum(isinstance(event, RequestPreempted) for event in watched.engine.trace) == 1
        return logits

    return run


def over_cached_blocks(model: LoadedModel, config: EngineConfig) -> Tensor:
    watched = Watched(model, config)
    watched.logits()
    watched.name = watched.engine.add_request(PROMPT, GREEDY)
    logits = watched.logits()
    runs = [event for event in watched.engine.trace if isinstance(event, SequenceScheduled)]
    assert next(run for run in runs if run.seq_id == watched.name).start > 0
    return logits


def in_other_blocks(model: LoadedModel, config: EngineConfig) -> Tensor:
    watched = Watched(model, config)
    run_to_end(watched.engine, 3)
    watched.engine.shuffle_blocks(moving_permutation(config.num_blocks, seed=5))
    return watched.logits()


WAYS = {
    "chunks of 1": cut_into(1),
    "chunks of 2": cut_into(2),
    "chunks of 7": cut_into(7),
    "neighbours": among_others,
    "recompute": preempted(enable_prefix_caching=False),
    "recompute over cached blocks": preempted(),
    "swap": preempted(preemption_mode="swap", num_cpu_blocks=40),
    "cached blocks": over_cached_blocks,
    "other blocks": in_other_blocks,
}


def ways_that_differ(model: LoadedModel, config: EngineConfig) -> list[str]:
    alone = Watched(model, config).logits()
    assert len(alone) == GREEDY.max_tokens
    return [name for name, way in WAYS.items() if not torch.equal(way(model, config), alone)]


@models
def test_logits_are_bitwise_equal_in_any_batch(make: Make, kind: str) -> None:
    model, config = make(kind)
    assert ways_that_differ(model, replace(config, batch_invariant=True)) == []


@models
def test_without_batch_invariant_logits_may_differ(make: Make, kind: str) -> None:
    model, config = make(kind)
    alone = Watched(model, config).logits()
    assert not torch.equal(WAYS["chunks of 1"](model, config), alone)
    assert not torch.equal(WAYS["recompute"](model, config), alone)


def text_of(config: EngineConfig, prompts: dict[str, SamplingParams], preempt_after: int | None = None) -> list[str]:
    engine = Engine(config, build_components(config, loaded(dtype=config.dtype)))
    names = [engine.add_request(prompt, params) for prompt, params in prompts.items()]
    if preempt_after is not None:
        run_to_end(engine, preempt_after)
        engine.preempt_request(names[0])
    assert run_to_end(engine)
    return [engine.output(name).outputs[0].text for name in names]


@pytest.mark.embedded
@INT4
def test_the_same_seed_gives_the_same_text_after_preemption_and_in_chunks_of_one() -> None:
    config = EngineConfig(block_size=4, dtype="int4", batch_invariant=True)
    drawn = SamplingParams(seed=0, temperature=1.0, max_tokens=20, ignore_eos=True)
    both = {"The capital of France is": drawn, "A recipe for bread:": drawn}
    assert text_of(replace(config, num_blocks=10), both) == text_of(config, both)
    greedy = SamplingParams(max_tokens=20, ignore_eos=True)
    fox = {"The quick brown fox": greedy}
    assert text_of(config, fox, preempt_after=6) == text_of(config, fox)
    colour = {"My favourite colour is": greedy}
    assert text_of(replace(config, long_prefill_token_threshold=1), colour) == text_of(config, colour)


def test_batch_invariant_is_refused_where_it_is_unsupported() -> None:
    with pytest.raises(ConfigError, match="batch_invariant cannot run on attention_backend 'triton'"):
        EngineConfig(attention_backend="triton", batch_invariant=True)
    with pytest.raises(ConfigError, match="batch_invariant must be true or false; it is 1"):
        EngineConfig(batch_invariant=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="batch_invariant runs on the CPU only, and device is 'cuda'"):
        check_batch_invariant_device(torch.device("cuda"))
