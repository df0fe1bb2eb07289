"""A pytest plugin: every engine records its decode steps at once and replays them, under the lock, as on a GPU.

    REPLAYS_FILE=replays.txt python -m pytest -p tests.helpers.emulated_graphs_plugin tests/engine

Each process adds a line to REPLAYS_FILE with the number of steps it replayed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from torch import Tensor

from engine import components, runner
from engine.config import EngineConfig
from engine.model.cuda_graphs import CUDA_LOCK
from engine.model.kv_store import KVStore
from engine.model.llama import LlamaModel, ModelInputs
from tests.helpers.emulated_graphs import EmulatedGraphs


class CountedGraphs(EmulatedGraphs):
    """Adds up the replayed steps of all engines."""

    total = 0

    def run(self, step: ModelInputs) -> Tensor:
        before = self.num_replays
        logits = super().run(step)
        CountedGraphs.total += self.num_replays - before
        return logits


def install(graphs: type[EmulatedGraphs] = CountedGraphs) -> pytest.MonkeyPatch:
    """Give every engine from now on `graphs`. The result undoes it."""

    def fast_path(config: EngineConfig, model: LlamaModel, store: KVStore) -> EmulatedGraphs:
        return graphs(model, store, config.max_num_seqs, config.max_model_len, record_after=1)

    patch = pytest.MonkeyPatch()
    patch.setattr(components, "_fast_path", fast_path)
    patch.setattr(runner, "lock_of", lambda _device: CUDA_LOCK)
    return patch


def pytest_configure() -> None:
    install()


def pytest_sessionfinish() -> None:
    with Path(os.environ["REPLAYS_FILE"]).open("a", encoding="utf-8") as file:
        file.write(f"{CountedGraphs.total}\n")
