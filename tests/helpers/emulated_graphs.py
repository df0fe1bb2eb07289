"""CUDA graphs on the CPU: what DecodeGraphs records is replayed by running the model again into the same tensors.

Like a graph, a recording keeps the batch's tensors, the kernels of the moment it was made, its rows of the one tensor
of logits and the greedy choice, which every replay overwrites.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from engine import Engine, EngineConfig
from engine.components import build_components, sampler_of
from engine.model.cuda_graphs import DecodeGraphs, StaticBatch, _Recorded
from engine.model.kv_store import KVStore
from engine.runner import ModelRunner
from engine.scheduler import ScheduledSequence
from tests.helpers.models import loaded


class EmulatedGraphs(DecodeGraphs):
    """`num_replays` counts the steps that were replayed."""

    num_replays = 0

    def _record(self, batch: StaticBatch) -> _Recorded:
        kernels_of_this_moment = copy.copy(self.kv_store)
        logits = self._logits_buffer(len(batch.inputs.seq_lens))
        logits.copy_(self._logits(batch))
        choice = self._backend.argmax_logsumexp(logits)

        def replay() -> None:
            self.num_replays += 1
            hidden = self.model.forward(batch.inputs, kernels_of_this_moment)
            logits.copy_(self.model.compute_logits(hidden))
            choice.copy_(self._backend.argmax_logsumexp(logits))

        return _Recorded(batch, replay, logits, choice)


def emulated_engine(
    config: EngineConfig, graphs: type[EmulatedGraphs] = EmulatedGraphs, record_after: int = 1
) -> tuple[Engine, EmulatedGraphs]:
    """An engine of the tiny model whose decode steps are recorded, and what records them."""
    components = build_components(config, loaded("tiny-random"))
    runner, store = components.runner, components.store
    assert isinstance(runner, ModelRunner) and isinstance(store, KVStore)
    fast_path = graphs(runner.model, store, config.max_num_seqs, config.max_model_len, record_after)
    sampler = sampler_of(fast_path, store.backend)
    runner = ModelRunner(runner.model, store, fast_path)
    return Engine(config, replace(components, runner=runner, sampler=sampler)), fast_path


class FailsOnce:
    """A runner whose `at`-th batch fails, and none after it."""

    def __init__(self, runner: ModelRunner, at: int) -> None:
        self.runner, self.at, self.num_batches = runner, at, 0

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        self.num_batches += 1
        if self.num_batches == self.at:
            raise RuntimeError("on purpose")
        return self.runner.run(items)
