"""From what the scheduler decided to logits: the batch as tensors, the model, the rows that were asked for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.batch_inputs import BatchInputs, ScheduledSequence
from engine.cuda_graphs import DecodeGraphs
from engine.kv_store import KVStore
from engine.model import LlamaModel, ModelInputs


class ModelRunner:
    def __init__(self, model: LlamaModel, kv_store: KVStore, graphs: DecodeGraphs | None = None) -> None:
        """`graphs`: recorded decode steps, on a GPU."""
        self.model = model
        self.kv_store = kv_store
        self.graphs = graphs
        self._inputs = BatchInputs(kv_store.block_size, model.device)

    @torch.no_grad()
    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """Compute the scheduled tokens, writing their keys and values.

        Returns logits [num_logit_rows, vocab_size] float32 on the model's device: a row for each item with
        `needs_logits`, in the order of the items.
        """
        inputs = self.prepare(items)
        if self.graphs is not None and self.graphs.fits(inputs):
            return self.graphs.run(inputs)
        hidden = self.model.forward(inputs, self.kv_store)
        return self.model.compute_logits(hidden[inputs.logits_indices])

    def prepare(self, items: Sequence[ScheduledSequence]) -> ModelInputs:
        """The step as tensors, which the next step overwrites."""
        return self._inputs.prepare(items)
