"""A trace as text: one line an event, block tables and blocks as CSV, and a summary."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from engine.i18n import _, counted
from engine.trace.event_base import one_line
from engine.trace.state import CacheState
from engine.trace.trace import Trace
from engine.trace.usage import block_table_of

Row = tuple[object, ...]
LONGEST_NAME = 80


def listing(trace: Trace, _step: int | None = None) -> str:
    """One line an event. Line breaks inside a sentence are written as \\n, so a line stays a line."""
    lines = (f"{event.step:>6}  {type(event).__name__:<20}  {one_line(event.describe())}\n" for event in trace)
    return "".join(lines)


def block_tables_csv(trace: Trace, step: int | None = None) -> str:
    """One row for each entry of each block table. Raises IndexError for a step that the trace does not have."""
    header = ("seq_id", "logical_index", "block_id", "first_position", "num_written", "num_empty", "ref_cnt", "tokens")
    return _csv(header, _table_rows(_state(trace, step)))


def blocks_csv(trace: Trace, step: int | None = None) -> str:
    """One row for each physical block. `held_by`: seq_id:logical_index, several apart by blanks."""
    header = ("block_id", "status", "ref_cnt", "held_by", "block_hash", "tokens")
    return _csv(header, _block_rows(_state(trace, step)))


def summary(trace: Trace, _step: int | None = None) -> str:
    """What a trace that could be read and replayed holds, in a few lines."""
    state = _state(trace, None)
    memory = f"{state.num_blocks} x {state.block_size}"
    if state.arena:
        memory = counted("{n} slot in one contiguous region", "{n} slots in one contiguous region", len(state.arena))
    if not state.arena and not state.blocks:
        memory = counted(
            "places unknown, {n} block stored", "places unknown, {n} blocks stored", state.prefix_cache.num_copies
        )
    known = ", ".join(f"{key} {value}" for key, value in sorted(trace.info.items()) if isinstance(value, str | int))
    return _(
        "Valid trace: {num_trace} in {num_steps}.\n"
        "Memory: {memory}; requests: {num_requests}; sequences: {num_sequences}.\n"
        "Source: {one_line}.\n"
        "{left_out}"
    ).format(
        num_trace=counted("{n} event", "{n} events", len(trace)),
        num_steps=counted("{n} step", "{n} steps", trace.num_steps),
        memory=memory,
        num_requests=len(state.requests),
        num_sequences=len(state.sequences),
        one_line=one_line(known) or "unknown",
        left_out=_left_out(trace.unknown_fields),
    )


def _left_out(names: Sequence[str]) -> str:
    """The fields of the file that were not read: a newer program may have written them."""
    if not names:
        return ""
    fields = ", ".join(one_line(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...") for name in names)
    return f"Fields that are not known here were left out: {fields}.\n"


def _state(trace: Trace, step: int | None) -> CacheState:
    return trace.at(trace.num_steps if step is None else step)


def _table_rows(state: CacheState) -> Iterator[Row]:
    for seq_id in state.sequences:
        for entry in block_table_of(state, seq_id):
            yield (
                seq_id, entry.logical_index, entry.block_id, entry.first_position,
                entry.num_written, entry.num_empty, entry.ref_cnt, "".join(entry.pieces),
            )  # fmt: skip


def _block_rows(state: CacheState) -> Iterator[Row]:
    if not state.blocks:
        yield from _stored_rows(state)
    for block in state.blocks:
        held_by = " ".join(f"{seq_id}:{index}" for seq_id, index in block.owners.items())
        block_hash = "" if block.block_hash is None else block.block_hash
        tokens = "".join(slot.piece for slot in block.slots if slot)
        yield block.block_id, block.status, block.ref_cnt, held_by, block_hash, tokens


def _stored_rows(state: CacheState) -> Iterator[Row]:
    """Of a source that does not know places: a row a copy, what is not known left blank, tokens as ids."""
    for view in state.prefix_cache.ranks.values():
        for block in view.blocks.values():
            for _place in block.places:
                yield "", "stored", "", "", block.block_hash, " ".join(map(str, block.token_ids))


def _csv(header: Row, rows: Iterator[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def _harmless(cell: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
