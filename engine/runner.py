"""From what the scheduler decided to logits: the batch as tensors, the model, the rows that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.batch import BatchInputs, BatchItem
from engine.model.cuda_graphs import DecodeGraphs, lock_of
from engine.model.device import to_device
from engine.model.input_buffer import upload
from engine.model.kv_store import KVStore
from engine.model.llama import LlamaModel, ModelInputs


class FastPath(Protocol):
    """A faster way through the steps that fit it: recorded on a GPU, or compiled as one on a CPU."""

    def supports(self, step: ModelInputs) -> bool:
        """Whether this step can take the fast path."""
        ...

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_logit_rows, vocab_size] float32, valid until the next run; keys and values are written."""
        ...


class ModelRunner:
    """Runs steps of one model over one KV store, on `fast_path` where it supports the step."""

    def __init__(self, model: LlamaModel, kv_store: KVStore, fast_path: FastPath | None = None) -> None:
        self.model = model
        self.kv_store = kv_store
        self.fast_path = fast_path
        self._inputs = BatchInputs(kv_store.block_size)
        self._decode_inputs = BatchInputs(kv_store.block_size)

    @torch.no_grad()
    def run(self, items: Sequence[BatchItem]) -> Tensor:
        """Compute the scheduled tokens, writing their keys and values.

        Returns logits [num_logit_rows, vocab_size] float32 on the model's device: a row for each item with
        `needs_logits`, in the order of the items. They are valid until the next run: a recorded step writes them where
        the step before wrote its own.
        """
        with lock_of(self.model.device):
            inputs = self.prepare(items)
            if self.fast_path is not None and self.fast_path.supports(inputs):
                return self.fast_path.run(inputs)
            if isinstance(self.fast_path, DecodeGraphs):
                logits = self._run_split(items, self.fast_path)
                if logits is not None:
                    return logits
            return self.model.next_token_logits(upload(inputs, self.model.device), self.kv_store)

    def _run_split(self, items: Sequence[BatchItem], graphs: DecodeGraphs) -> Tensor | None:
        """A mixed step in two parts: its decodes by their graph, the chunks of prompts eagerly.

        Eagerly all of them would wait for hundreds of launches. Returns the logits of `run`, [num_logit_rows,
        vocab_size]; None where no graph is recorded for the decodes. Sequences of one step never read what another one
        writes in it, so the order of the parts is free.
        """
        decodes = [item for item in items if _is_decode(item)]
        if len(decodes) in (0, len(items)):
            return None
        step = self._decode_inputs.prepare(decodes)
        if not graphs.has_recorded(step):
            return None
        decoded = graphs.run(step)
        chunks = self.prepare([item for item in items if not _is_decode(item)])
        prefilled = self.model.next_token_logits(upload(chunks, self.model.device), self.kv_store)
        if not len(prefilled):
            return decoded
        together = torch.cat([decoded, prefilled])
        decoded_rows, prefilled_rows = iter(range(len(decoded))), iter(range(len(decoded), len(together)))
        rows = [next(decoded_rows if _is_decode(item) else prefilled_rows) for item in items if item.needs_logits]
        return together.index_select(0, to_device(torch.tensor(rows), self.model.device))

    @torch.no_grad()
    def capture_model(self) -> None:
        """Record the CUDA graphs of all batch sizes now, for a server that will meet them all. Without graphs, nothing.

        vLLM's name for it.
        """
        if isinstance(self.fast_path, DecodeGraphs):
            self.fast_path.record_all()

    def prepare(self, items: Sequence[BatchItem]) -> ModelInputs:
        """The step as tensors in CPU memory, which the next step overwrites."""
        return self._inputs.prepare(items)


def _is_decode(item: BatchItem) -> bool:
    """Whether it computes one token, and the next one is wanted."""
    return item.num_new_tokens == 1 and item.needs_logits


class NoModel:
    """A runner without a model: logits [rows that need them, 0]."""

    def run(self, items: Sequence[BatchItem]) -> Tensor:
        """Logits [num_logit_rows, 0]: rows without scores, for a sampler that needs none."""
        return torch.empty(sum(item.needs_logits for item in items), 0)
