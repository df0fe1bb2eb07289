"""From what the scheduler decided to logits: flatten the batch into tensors, run the model, pick the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.kv_store import KVStore
from engine.model import LlamaModel, ModelInputs
from engine.slots import slots_of


class HasTokens(Protocol):
    @property
    def token_ids(self) -> list[int]:
        """Prompt and generated tokens, those not yet computed included."""
        ...


class ScheduledSequence(Protocol):
    """What the runner reads of one scheduled sequence; the scheduler's own type has more."""

    @property
    def sequence(self) -> HasTokens: ...

    @property
    def start(self) -> int:
        """num_computed_tokens before the step: the position of the first token to compute."""
        ...

    @property
    def num_new_tokens(self) -> int: ...

    @property
    def block_table(self) -> list[int]: ...

    @property
    def needs_logits(self) -> bool:
        """Whether this step computes the sequence's last token, so that the next one can be sampled."""
        ...


class ModelRunner:
    def __init__(self, model: LlamaModel, kv_store: KVStore) -> None:
        self.model = model
        self.kv_store = kv_store

    @torch.no_grad()
    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """Compute the scheduled tokens, writing their keys and values.

        Returns logits [num_logit_rows, vocab_size] float32 on the model's device: a row for each item with
        `needs_logits`, in the order of the items.
        """
        inputs = prepare_inputs(items, self.kv_store.block_size, self.model.device)
        hidden = self.model.forward(inputs, self.kv_store)
        return self.model.compute_logits(hidden[inputs.logits_indices])


def prepare_inputs(items: Sequence[ScheduledSequence], block_size: int, device: torch.device) -> ModelInputs:
    """The batch as flat tensors, one sequence's tokens after another's."""
    input_ids: list[int] = []
    positions: list[int] = []
    slot_mapping: list[int] = []
    query_start_loc = [0]
    logits_indices: list[int] = []
    for item in items:
        end = item.start + item.num_new_tokens
        input_ids += item.sequence.token_ids[item.start : end]
        positions += range(item.start, end)
        slot_mapping += slots_of(item.block_table, item.start, end, block_size)
        query_start_loc.append(len(input_ids))
        if item.needs_logits:
            logits_indices.append(len(input_ids) - 1)

    def int64(values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    def int32(values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    return ModelInputs(
        input_ids=int64(input_ids),
        positions=int64(positions),
        slot_mapping=int64(slot_mapping),
        block_table=_padded_block_tables(items).to(device),
        seq_lens=int32([item.start + item.num_new_tokens for item in items]),
        query_start_loc=int32(query_start_loc),
        logits_indices=int64(logits_indices),
    )


def _padded_block_tables(items: Sequence[ScheduledSequence]) -> Tensor:
    """[num_seqs, max_blocks_per_seq] int32; rows end in zeros that no `seq_lens` reaches."""
    width = max(len(item.block_table) for item in items)
    table = torch.zeros(len(items), width, dtype=torch.int32)
    for row, item in zip(table, items, strict=True):
        row[: len(item.block_table)] = torch.tensor(item.block_table, dtype=torch.int32)
    return table
