"""One compiled call gives what the model's operations give one by one, in logits and in the cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.batch import BatchInputs
from engine.model import linear
from engine.model.compiled_steps import CompiledSteps, can_compile
from engine.model.linear import has_int4_gemm
from engine.model.llama import LlamaModel, build_model
from engine.model.load_report import ProgressCallback
from engine.model.weights.embedded import embedded_folder, embedded_int4_source, embedded_source
from engine.model.weights.hub import read_config
from engine.model.weights.load import LoadedModel
from engine.model.weights.source import WeightSource
from engine.runner import ModelRunner
from tests.helpers.models import CPU, Item, Tokens, loaded, new_kv_store, runs_bf16_gemm
from tests.helpers.tiny_gguf import write_tiny_gguf

pytestmark = pytest.mark.skipif(not has_int4_gemm(), reason="needs Numba and AVX-512 VNNI")

A, B, C = Tokens(list(range(5, 45))), Tokens([3, 1, 4, 1, 5, 9]), Tokens([2, 7, 1, 8])
STEPS = [
    [Item(A, 0, 20, [6, 2, 9, 1, 8], needs_logits=False), Item(B, 0, 5, [0, 4])],
    [Item(A, 20, 20, [6, 2, 9, 1, 8, 11, 3, 12, 14, 13]), Item(B, 5, 1, [0, 4]), Item(C, 0, 3, [10])],
    [Item(C, 3, 1, [10])],
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAGED_KV_CACHE_DIR", str(tmp_path))
    return embedded_folder(lambda _: None, _fetch)


@pytest.fixture
def model(folder: Path) -> LoadedModel:
    return model_of(folder, embedded_int4_source(folder))


def model_of(folder: Path, source: WeightSource) -> LoadedModel:
    """Two layers, the second with a sliding window."""
    config = replace(read_config(folder), sliding_windows=(None, 6))
    return replace(loaded("tiny-random"), config=config, model=build_model(config, source))


def _fetch(folder: Path, _progress: ProgressCallback) -> Path:
    write_tiny_gguf(folder / "tiny.gguf")
    return folder / "tiny.gguf"


@pytest.mark.parametrize("num_layers", [1, 2])
def test_compiled_layers_equal_the_readable_model_after_each_layer(model: LoadedModel, num_layers: int) -> None:
    config = replace(model.config, num_layers=num_layers, sliding_windows=model.config.sliding_windows[:num_layers])
    cut = replace(model.model, config=config, layers=model.model.layers[:num_layers])
    ours, theirs = (new_kv_store(replace(model, config=config, model=cut), backend="cpu") for _ in range(2))
    compiled = CompiledSteps(cut, ours)
    for items in STEPS:
        step = BatchInputs(ours.block_size).prepare(items)
        assert torch.equal(compiled.forward(step), cut.forward(step, theirs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_steps_equal_the_readable_model_bitwise(model: LoadedModel, dtype: torch.dtype) -> None:
    ours, theirs = (new_kv_store(model, backend="cpu", dtype=dtype) for _ in range(2))
    compiled = CompiledSteps(model.model, ours)
    runner = ModelRunner(model.model, theirs)
    for items in STEPS:
        step = BatchInputs(ours.block_size).prepare(items)
        assert compiled.supports(step)
        assert torch.equal(compiled.run(step), runner.run(items))
        assert torch.equal(ours.key_cache, theirs.key_cache) and torch.equal(ours.value_cache, theirs.value_cache)
    assert ours.key_cache.count_nonzero() > 0
    assert (compiled.cycles > 0).all()


def test_a_long_prompt_runs_in_chunks(model: LoadedModel) -> None:
    from kernels.decoder_layers.cpu import CHUNK_TOKENS  # needs Numba

    num_tokens = CHUNK_TOKENS + 30
    blocks = list(range(-(-num_tokens // 16)))
    ours, theirs = (new_kv_store(model, backend="cpu", num_blocks=len(blocks), block_size=16) for _ in range(2))
    prompt = Item(Tokens([number * number % 251 for number in range(num_tokens)]), 0, num_tokens, blocks)
    step = BatchInputs(16).prepare([prompt])
    assert torch.equal(CompiledSteps(model.model, ours).run(step), ModelRunner(model.model, theirs).run([prompt]))
    assert torch.equal(ours.key_cache, theirs.key_cache)


@pytest.mark.skipif(not runs_bf16_gemm(), reason="needs AVX-512 BF16")
def test_bfloat16_weights_with_float32_activations_are_more_accurate(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "has_bf16_gemm", lambda: True)

    def logits(model: LoadedModel, compiled: bool) -> torch.Tensor:
        store = new_kv_store(model, backend="cpu")
        runner = ModelRunner(model.model, store, CompiledSteps(model.model, store) if compiled else None)
        return torch.cat([runner.run(items) for items in STEPS])

    halved = model_of(folder, embedded_source(folder, torch.bfloat16, CPU))
    exact = logits(model_of(folder, embedded_source(folder, torch.float32, CPU)), compiled=False)
    ours, one_by_one = ((logits(halved, compiled) - exact).abs().mean() for compiled in (True, False))
    assert 0 < ours < one_by_one < 0.02 * exact.abs().mean()


def test_a_wrapped_backend_is_called(model: LoadedModel) -> None:
    store = new_kv_store(model, backend="cpu")
    compiled = CompiledSteps(model.model, store)
    store.backend = replace(store.backend, reason="watched")
    assert not compiled.supports(BatchInputs(store.block_size).prepare(STEPS[0]))


def test_only_packed_weights_over_numba_kernels_are_compiled(model: LoadedModel) -> None:
    def compiles(model: LlamaModel, backend: str) -> bool:
        return can_compile(model, new_kv_store(loaded("tiny-random"), backend=backend))

    normed = replace(model.model.layers[0], qk_norm=torch.ones(6, 16))
    assert compiles(model.model, "cpu")
    assert not compiles(model.model, "reference")
    assert not compiles(replace(model.model, layers=(normed,)), "cpu")
    assert not compiles(loaded("tiny-random").model, "cpu")
