"""From what the scheduler decided to logits: the batch as tensors, the model, the rows that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.batch_inputs import BatchInputs, ScheduledSequence
from engine.kv_store import KVStore
from engine.model import LlamaModel, ModelInputs


class Shortcut(Protocol):
    """A faster way through the steps that fit it: recorded on a GPU, or compiled as one on a CPU."""

    def fits(self, step: ModelInputs) -> bool: ...

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_logit_rows, vocab_size] float32; keys and values are written."""
        ...


class ModelRunner:
    def __init__(self, model: LlamaModel, kv_store: KVStore, shortcut: Shortcut | None = None) -> None:
        self.model = model
        self.kv_store = kv_store
        self.shortcut = shortcut
        self._inputs = BatchInputs(kv_store.block_size, model.device)

    @torch.no_grad()
    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """Compute the scheduled tokens, writing their keys and values.

        Returns logits [num_logit_rows, vocab_size] float32 on the model's device: a row for each item with
        `needs_logits`, in the order of the items.
        """
        inputs = self.prepare(items)
        if self.shortcut is not None and self.shortcut.fits(inputs):
            return self.shortcut.run(inputs)
        hidden = self.model.forward(inputs, self.kv_store)
        return self.model.compute_logits(hidden[inputs.logits_indices])

    def prepare(self, items: Sequence[ScheduledSequence]) -> ModelInputs:
        """The step as tensors, which the next step overwrites."""
        return self._inputs.prepare(items)
