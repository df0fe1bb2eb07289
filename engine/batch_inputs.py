"""What the scheduler decided as tensors: the batch flattened, one sequence's tokens after another's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.model import ModelInputs
from engine.slots import slots_of
from engine.tensors import to_device


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


class BatchInputs:
    """Makes one step's ModelInputs. What it gives is overwritten by the next step's."""

    def __init__(self, block_size: int, device: torch.device) -> None:
        self.block_size = block_size
        self.device = device
        self._block_tables = PaddedTables(device)

    def prepare(self, items: Sequence[ScheduledSequence]) -> ModelInputs:
        input_ids: list[int] = []
        positions: list[int] = []
        slot_mapping: list[int] = []
        query_start_loc = [0]
        logits_indices: list[int] = []
        for item in items:
            end = item.start + item.num_new_tokens
            input_ids += item.sequence.token_ids[item.start : end]
            positions += range(item.start, end)
            slot_mapping += slots_of(item.block_table, item.start, end, self.block_size)
            query_start_loc.append(len(input_ids))
            if item.needs_logits:
                logits_indices.append(len(input_ids) - 1)
        return ModelInputs(
            input_ids=self._row(input_ids, torch.int64),
            positions=self._row(positions, torch.int64),
            slot_mapping=self._row(slot_mapping, torch.int64),
            block_table=self._block_tables.of([item.block_table for item in items]),
            seq_lens=self._row([item.start + item.num_new_tokens for item in items], torch.int32),
            query_start_loc=self._row(query_start_loc, torch.int32),
            logits_indices=self._row(logits_indices, torch.int64),
        )

    def _row(self, values: list[int], dtype: torch.dtype) -> Tensor:
        return to_device(torch.tensor(values, dtype=dtype), self.device)


class PaddedTables:
    """The block tables of a batch as one tensor that lives on from step to step: only changed rows are written.

    A decode step changes a table once in `block_size` steps, so most steps write nothing.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._rows = np.zeros((0, 0), np.int32)
        self._written: list[list[int]] = []

    def of(self, tables: Sequence[list[int]]) -> Tensor:
        """[num_seqs, width] int32 on the device; width is a power of two, and no `seq_lens` reaches past a table."""
        self._make_room(len(tables), max(map(len, tables)))
        for row, table in enumerate(tables):
            if self._written[row] != table:
                self._rows[row, : len(table)] = table
                self._written[row] = list(table)
        return to_device(torch.from_numpy(self._rows[: len(tables)]), self.device)

    def _make_room(self, num_rows: int, width: int) -> None:
        """Grow to powers of two, so that it happens a few times in an engine's life."""
        rows, columns = self._rows.shape
        if num_rows > rows or width > columns:
            shape = (max(rows, _power_of_two(num_rows)), max(columns, _power_of_two(width)))
            self._rows = np.zeros(shape, np.int32)
            self._written = [[] for _ in range(shape[0])]


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
