"""Decode graphs in the service of a whole engine give the tokens of eager steps: emulated here, recorded on a card."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.components import EngineComponents, build_components
from engine.model.cuda_graphs import DecodeGraphs
from engine.model.kv_store import KVStore
from engine.model.weights.load import LoadedModel, load_model
from engine.runner import ModelRunner
from engine.trace.events import BlockCopied, RequestPreempted
from tests.helpers.emulated_graphs import EmulatedGraphs, FailsOnce

CONFIG = EngineConfig(
    model="tiny-random", dtype="float32", block_size=16, num_blocks=60, max_model_len=2048,
    preemption_mode="swap", num_cpu_blocks=60, enable_prefix_caching=False,
)  # fmt: skip
"""Tables of 128 blocks: a graph splits a sequence's keys, and an eager step over short tables does not."""
GREEDY = SamplingParams(max_tokens=20, ignore_eos=True)
GPU = pytest.param("cuda", id="gpu", marks=pytest.mark.gpu)
Change = Callable[[LoadedModel], LoadedModel]
Tokens = list[list[tuple[int, ...]]]


@pytest.fixture(params=[pytest.param("cpu", id="emulated"), GPU])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU that PyTorch can see")
    return request.param


def components(device: str, *, graphs: bool, change: Change = lambda loaded: loaded) -> EngineComponents:
    """Of CONFIG; with `graphs`, a size is recorded when it comes up for the first time."""
    config = replace(CONFIG, device=device, attention_backend="auto" if device == "cuda" else "reference")
    parts = build_components(config, change(load_model("tiny-random", dtype="float32", device=device)))
    runner, store = parts.runner, parts.store
    assert isinstance(runner, ModelRunner) and isinstance(store, KVStore)
    kind = DecodeGraphs if device == "cuda" else EmulatedGraphs
    fast_path = kind(runner.model, store, config.max_num_seqs, config.max_model_len, record_after=1)
    return replace(parts, runner=ModelRunner(runner.model, store, fast_path if graphs else None))


def graphs_of(parts: EngineComponents) -> DecodeGraphs:
    assert isinstance(parts.runner, ModelRunner) and isinstance(parts.runner.fast_path, DecodeGraphs)
    return parts.runner.fast_path


def busy_run(parts: EngineComponents, config: EngineConfig = CONFIG) -> tuple[Engine, Tokens]:
    """One request, then four more, then as they end: sizes up and down, tables past the edge of a block, a fork that
    copies a block, and a swap out and in between two replays."""
    engine = Engine(replace(config, device="auto", attention_backend="reference"), parts)
    engine.add_request("The red fox crossed", GREEDY)
    while engine.has_unfinished_requests():
        engine.step()
        if engine.trace.step == 4:
            for length in (5, 9, 14):
                engine.add_request("abcdefghijklmn"[:length], replace(GREEDY, max_tokens=length + 4))
            engine.add_request("é日", replace(GREEDY, n=2, temperature=1.0, seed=4))
        if engine.trace.step == 9:
            engine.preempt_request("A")
        engine.check_invariants()
    return engine, [[output.token_ids for output in engine.output(name).outputs] for name in "ABCDE"]


@cache
def eager(device: str) -> Tokens:
    """The tokens without graphs."""
    return busy_run(components(device, graphs=False))[1]


def test_sizes_up_and_down_copies_and_swaps(device: str) -> None:
    parts = components(device, graphs=True)
    engine, tokens = busy_run(parts)
    assert tokens == eager(device)
    assert {BlockCopied, RequestPreempted} <= {type(event) for event in engine.trace}
    graphs = graphs_of(parts)
    assert not graphs.has_failed
    assert {len(graph.logits) for graph in graphs._recorded.values()} == {1, 2, 4, 8}


def test_a_sliding_window_and_normalised_heads(device: str) -> None:
    """Qwen3 normalises queries and keys; Mistral sees a window."""

    def changed(loaded: LoadedModel) -> LoadedModel:
        model = loaded.model
        random = torch.Generator().manual_seed(0)
        shape = (model.config.num_heads + model.config.num_kv_heads, model.config.head_dim)
        norms = [torch.rand(shape, generator=random).add(0.5).to(model.device) for _ in model.layers]
        layers = tuple(replace(layer, qk_norm=norm) for layer, norm in zip(model.layers, norms, strict=True))
        config = replace(model.config, sliding_windows=(8,) * len(layers))
        return replace(loaded, config=config, model=replace(model, config=config, layers=layers))

    tokens = busy_run(components(device, graphs=True, change=changed))[1]
    assert tokens == busy_run(components(device, graphs=False, change=changed))[1]
    assert tokens != eager(device), "the window and the norms change the tokens"


def test_after_a_fault_every_request_gets_its_own_logits(device: str) -> None:
    parts = components(device, graphs=True)
    assert isinstance(parts.runner, ModelRunner)
    tokens = busy_run(replace(parts, runner=FailsOnce(parts.runner, at=8)))[1]
    assert tokens == eager(device)


def test_a_replaced_backend_is_not_bypassed(device: str) -> None:
    parts = components(device, graphs=True)
    store = parts.store
    assert isinstance(store, KVStore)
    busy_run(parts)
    own, calls = store.backend, []

    def counted(qkv: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        calls.append(len(qkv))
        return own.rotary_write_kv(qkv, *others)

    store.backend = replace(own, rotary_write_kv=counted)  # type: ignore[arg-type]
    engine, _ = busy_run(parts)
    assert len(calls) == 2 * engine.trace.num_steps, "one call a layer in every step"


def test_two_engines_in_two_threads(device: str) -> None:
    alone = eager(device)
    with ThreadPoolExecutor(2) as threads:
        runs = threads.map(busy_run, [components(device, graphs=True) for _ in range(2)])
        assert [tokens for _, tokens in runs] == [alone] * 2
