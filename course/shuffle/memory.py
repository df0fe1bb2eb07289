"""What memory holds around a shuffle, moment by moment, and what each row of a block table finds there.

When only memory is moved, no event says so, and the trace still has every token in its old block. So the states after
the move are folded from a state whose contents were moved; later writes go where the block tables point, as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from course.shuffle.experiment import ShuffleReport
from engine.trace.events import BlocksShuffled, Event
from engine.trace.state import CacheState, SlotContent
from engine.trace.trace import Trace

Move = Literal["untouched", "with_tables", "memory_only"]


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """Memory after `step`; twice for the step after which blocks moved: before the move, then with `is_move`."""

    step: int
    is_move: bool
    state: CacheState
    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class RowFound:
    """One row of a block table: the tokens of its logical block, and the contents of the slots it points to.

    `found[i]` is None where nothing was ever written. `num_right` of them are the tokens looked for.
    """

    logical_index: int
    block_id: int
    wanted: tuple[str, ...]
    found: tuple[SlotContent | None, ...]
    num_right: int


@dataclass(frozen=True, slots=True)
class TableFound:
    """A block table compared with memory: `num_right` of its `num_wanted` tokens are in the slots it points to."""

    rows: tuple[RowFound, ...]

    @property
    def num_wanted(self) -> int:
        """Tokens that the table should lead to."""
        return sum(len(row.wanted) for row in self.rows)

    @property
    def num_right(self) -> int:
        """Tokens that the table does lead to."""
        return sum(row.num_right for row in self.rows)


def moments(report: ShuffleReport, move: Move) -> Iterator[MemorySnapshot]:
    """Every step of that run, and the move in its place. The untouched run has no move."""
    trace = _trace_of(report, move)
    moved_after = min(report.after_step, report.untouched.trace.num_steps)
    for step in range(moved_after + 1):
        yield MemorySnapshot(step, False, report.untouched.trace.at(step), report.untouched.trace.events_of(step))
    state = report.untouched.trace.at(moved_after)
    if move == "with_tables":
        shuffled = BlocksShuffled(moved_after, report.permutation)
        state.apply(shuffled)
        yield MemorySnapshot(moved_after, True, state.copy(), (shuffled,))
    elif move == "memory_only":
        move_contents(state, report.permutation)
        yield MemorySnapshot(moved_after, True, state.copy(), ())
    for step in range(moved_after + 1, trace.num_steps + 1):
        for event in trace.events_of(step):
            state.apply(event)
        yield MemorySnapshot(step, False, state.copy(), trace.events_of(step))


def move_contents(state: CacheState, permutation: Sequence[int]) -> None:
    """Move the contents of block i to block `permutation[i]`, in place. Block tables, references and queue stay."""
    contents = [block.slots for block in state.blocks]
    for old, new in enumerate(permutation):
        state.blocks[new].slots = contents[old]


def table_found(state: CacheState, seq_id: str) -> TableFound:
    """Compare the sequence's block table with memory, row by row. No rows before it is added and after it finished."""
    if seq_id not in state.sequences:
        return TableFound(())
    sequence, size = state.sequences[seq_id], state.block_size
    rows = []
    for index, block_id in enumerate(sequence.block_table):
        positions = range(index * size, min((index + 1) * size, sequence.num_computed_tokens))
        found = tuple(state.blocks[block_id].slots[: len(positions)])
        right = sum(
            content is not None and (content.position, content.token_id) == (position, sequence.token_ids[position])
            for position, content in zip(positions, found, strict=True)
        )
        rows.append(RowFound(index, block_id, tuple(sequence.pieces[p] for p in positions), found, right))
    return TableFound(tuple(rows))


def _trace_of(report: ShuffleReport, move: Move) -> Trace:
    runs = {"untouched": report.untouched, "with_tables": report.with_tables, "memory_only": report.memory_only}
    return runs[move].trace
