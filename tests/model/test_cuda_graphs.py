"""Decode batches padded to a recorded size: the same logits, and nothing else written. Recording needs a card."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.batch import BatchInputs
from engine.components import _fast_path, build_components
from engine.config import ConfigError
from engine.model.cuda_graphs import DecodeGraphs, StaticBatch, captured_sizes, is_decode
from engine.model.kv_store import KVStore
from engine.model.llama import ModelInputs
from engine.runner import ModelRunner
from kernels.registry import BACKENDS
from tests.helpers.models import CPU, Item, Tokens, loaded, new_kv_store

A, B, C = Tokens([3, 4, 5, 6, 7]), Tokens([8, 9]), Tokens([10, 11, 12])
TABLES = {id(A): [5, 1], id(B): [2], id(C): [7]}


def decode_step(*sequences: Tokens) -> ModelInputs:
    """The step that computes each sequence's last token."""
    items = [Item(s, len(s.token_ids) - 1, 1, TABLES[id(s)]) for s in sequences]
    return BatchInputs(4).prepare(items)


def test_capture_sizes_end_at_max_num_seqs() -> None:
    assert captured_sizes(1) == [1]
    assert captured_sizes(3) == [1, 2, 4]
    assert captured_sizes(8) == [1, 2, 4, 8]
    assert captured_sizes(20) == [1, 2, 4, 8, 16, 24]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_padded_rows_change_no_logits_and_write_no_slot(backend: str) -> None:
    """Filled twice, the second time with fewer sequences: nothing of the first may be left over."""
    model = loaded("tiny-random")
    store = new_kv_store(model, num_blocks=8, block_size=4, backend=backend)
    runner = ModelRunner(model.model, store)
    runner.run([Item(s, 0, len(s.token_ids), TABLES[id(s)]) for s in (A, B, C)])
    batch = StaticBatch(8, 2, CPU)
    addresses = addresses_of(batch)
    for sequences in ((A, B, C), (C, A)):
        step = decode_step(*sequences)
        expected = model.model.compute_logits(model.model.forward(step, store))
        before = store.key_cache.clone(), store.value_cache.clone()
        batch.fill(step)
        padded = model.model.compute_logits(model.model.forward(batch.inputs, store))
        torch.testing.assert_close(padded[: len(sequences)], expected, rtol=0, atol=1e-5)
        assert padded.isfinite().all()
        torch.testing.assert_close((store.key_cache, store.value_cache), before, rtol=0, atol=1e-5)
    assert addresses_of(batch) == addresses
    assert batch.inputs.slot_mapping.tolist() == [7 * 4 + 2, 1 * 4 + 0, *[-1] * 6]


def addresses_of(batch: StaticBatch) -> list[int]:
    return [field.data_ptr() for field in vars(batch.inputs).values() if isinstance(field, torch.Tensor)]


def test_only_a_pure_decode_step_whose_tokens_are_all_wanted_is_replayed() -> None:
    assert is_decode(decode_step(A, B))
    prefill = BatchInputs(4).prepare([Item(A, 0, 5, [5, 1]), Item(B, 1, 1, [2])])
    assert not is_decode(prefill)
    unwanted = BatchInputs(4).prepare([Item(A, 4, 1, [5, 1], needs_logits=False)])
    assert not is_decode(unwanted)


def test_the_cpu_has_no_graphs() -> None:
    config = EngineConfig(model="tiny-random", num_blocks=8)
    runner = build_components(config, loaded("tiny-random")).runner
    assert isinstance(runner, ModelRunner) and runner.fast_path is None


def test_enforce_eager_leaves_a_gpu_without_graphs() -> None:
    parts = build_components(EngineConfig(model="tiny-random", num_blocks=8), loaded("tiny-random"))
    store, model = parts.store, replace(loaded("tiny-random").model, device=torch.device("cuda"))
    assert isinstance(store, KVStore)
    [triton] = [spec for spec in BACKENDS if spec.name == "triton"]
    store.backend = replace(store.backend, spec=triton)
    assert isinstance(_fast_path(EngineConfig(), model, store), DecodeGraphs)
    assert _fast_path(EngineConfig(enforce_eager=True), model, store) is None
    with pytest.raises(ConfigError, match="enforce_eager must be"):
        EngineConfig(enforce_eager="no")  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that PyTorch can see")
def test_replayed_steps_give_the_tokens_of_eager_ones() -> None:
    config = EngineConfig(model="tiny-random", dtype="float32", block_size=5, num_blocks=40, device="cuda")
    texts = []
    for enforce_eager in (False, True):
        engine = Engine(replace(config, enforce_eager=enforce_eager))
        outputs = engine.generate(["The red fox", "é日", "a"], SamplingParams(max_tokens=20, ignore_eos=True))
        texts.append([output.outputs[0].token_ids for output in outputs])
    assert texts[0] == texts[1]
