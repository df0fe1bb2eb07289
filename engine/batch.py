"""What the scheduler decided as tensors: the batch flattened, one sequence's tokens after another's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.kv_cache.manager import slots_of
from engine.model.llama import ModelInputs


class HasTokens(Protocol):
    """The tokens of one sequence."""

    @property
    def token_ids(self) -> list[int]:
        """Prompt and generated tokens, those not yet computed included."""
        ...


class BatchItem(Protocol):
    """What the runner reads of one scheduled sequence; `scheduler.ScheduledSequence` is one."""

    @property
    def sequence(self) -> HasTokens:
        """The sequence whose tokens run."""
        ...

    @property
    def start(self) -> int:
        """num_computed_tokens before the step: the position of the first token to compute."""
        ...

    @property
    def num_new_tokens(self) -> int:
        """Tokens to compute, from `start` on."""
        ...

    @property
    def block_table(self) -> list[int]:
        """Physical block ids in logical order."""
        ...

    @property
    def needs_logits(self) -> bool:
        """Whether this step computes the sequence's last token, so that the next one can be sampled."""
        ...


class BatchInputs:
    """Makes one step's ModelInputs, in CPU memory. They are valid until the next step is prepared."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._block_tables = PaddedTables()
        self._input_ids, self._positions, self._slot_mapping, self._logits_indices = (Row(np.int64) for _ in range(4))
        self._seq_lens, self._query_start_loc = Row(np.int32), Row(np.int32)

    def prepare(self, items: Sequence[BatchItem]) -> ModelInputs:
        """The step as ModelInputs; see there for the shapes."""
        input_ids: list[int] = []
        positions: list[int] = []
        slot_mapping: list[int] = []
        seq_lens: list[int] = []
        query_start_loc = [0]
        logits_indices: list[int] = []
        for item in items:
            start = item.start
            end = start + item.num_new_tokens
            if end - start == 1:
                input_ids.append(item.sequence.token_ids[start])
                positions.append(start)
            else:
                input_ids += item.sequence.token_ids[start:end]
                positions += range(start, end)
            slot_mapping += slots_of(item.block_table, start, end, self.block_size)
            seq_lens.append(end)
            query_start_loc.append(len(input_ids))
            if item.needs_logits:
                logits_indices.append(len(input_ids) - 1)
        return ModelInputs(
            input_ids=self._input_ids.of(input_ids),
            positions=self._positions.of(positions),
            slot_mapping=self._slot_mapping.of(slot_mapping),
            block_table=self._block_tables.of([item.block_table for item in items]),
            seq_lens=self._seq_lens.of(seq_lens),
            query_start_loc=self._query_start_loc.of(query_start_loc),
            logits_indices=self._logits_indices.of(logits_indices),
            max_query_len=max([item.num_new_tokens for item in items]),
        )


class Row:
    """Numbers as a tensor that lives on while their count stays the same, as it does from one decode step to the next.

    Making a tensor takes longer than writing a few numbers into one.
    """

    def __init__(self, dtype: type[np.int64 | np.int32]) -> None:
        self._numbers = np.zeros(0, dtype)
        self._tensor = torch.from_numpy(self._numbers)

    def of(self, values: list[int]) -> Tensor:
        """[len(values)]"""
        if len(values) == len(self._numbers):
            self._numbers[:] = values
        else:
            self._numbers = np.array(values, self._numbers.dtype)
            self._tensor = torch.from_numpy(self._numbers)
        return self._tensor


class PaddedTables:
    """The block tables of a batch as one tensor that lives on from step to step: only changed rows are written.

    A decode step changes a table once in `block_size` steps, so most steps write nothing.
    """

    def __init__(self) -> None:
        self._rows = np.zeros((0, 0), np.int32)
        self._written: list[list[int]] = []

    def of(self, tables: Sequence[list[int]]) -> Tensor:
        """[num_seqs, width] int32; width is a power of two, and no `seq_lens` reaches past a table."""
        self._make_room(len(tables), max(map(len, tables)))
        for row, table in enumerate(tables):
            if self._written[row] != table:
                self._rows[row, : len(table)] = table
                self._written[row] = list(table)
        return torch.from_numpy(self._rows[: len(tables)])

    def _make_room(self, num_rows: int, width: int) -> None:
        """Grow to powers of two, so that it happens a few times in an engine's life."""
        rows, columns = self._rows.shape
        if num_rows > rows or width > columns:
            shape = (max(rows, _power_of_two(num_rows)), max(columns, _power_of_two(width)))
            self._rows = np.zeros(shape, np.int32)
            self._written = [[] for _index in range(shape[0])]


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
