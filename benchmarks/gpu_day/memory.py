"""Whether an engine that is dropped gives its memory back: its tensors are gone, and so is what the GPU counted."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import torch

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, Row
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.kv_store import KVStore
from engine.model.weights.load import LoadedModel

LIBRARIES = 64 << 20
"""Bytes that cuBLAS and the like keep once they have run."""
ENGINES = 3


def run(context: Context) -> Iterator[Finding]:
    """Raises AssertionError when keys and values live on, or the GPU holds more from engine to engine."""
    loaded = context.speed_model(context.dtype)
    held: list[int] = []
    for number in range(ENGINES):
        before, store = _bytes_held(context), _run_and_drop(context, loaded)
        gc.collect()
        held.append(_bytes_held(context))
        row: Row = {"engine": number + 1, "keys and values freed": store() is None}
        if context.on_card:
            row |= {"MB before": before / 1e6, "MB after": held[-1] / 1e6, "MB reserved": _reserved(context) / 1e6}
        yield Measured(row)
        if store() is not None:
            raise AssertionError("the keys and values of a dropped engine are still referenced")
    if held[-1] > held[0] + LIBRARIES:
        raise AssertionError(f"each engine leaves about {(held[-1] - held[0]) / (ENGINES - 1) / 1e6:.0f} MB behind")


def _run_and_drop(context: Context, loaded: LoadedModel) -> weakref.ref[torch.Tensor]:
    """A weak reference to the key cache of an engine that has run long enough to record its steps."""
    config = EngineConfig(
        num_blocks=64, max_num_seqs=2, max_model_len=64, dtype=loaded.dtype, device=context.device.type
    )
    engine = Engine(config, build_components(config, loaded))
    engine.generate([[1, 2, 3], [4, 5]], SamplingParams(max_tokens=context.sizes.new_tokens // 2, ignore_eos=True))
    store = engine.components.store
    assert isinstance(store, KVStore)
    return weakref.ref(store.key_cache)


def _bytes_held(context: Context) -> int:
    if not context.on_card:
        return 0
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated(context.device)


def _reserved(context: Context) -> int:
    return torch.cuda.memory_reserved(context.device)
