"""Look into a trace file from the command line.

python -m engine.trace_tool print FILE             one line an event: step, type, sentence
python -m engine.trace_tool table FILE --step N    block tables after step N, as CSV (without --step: at the end)
python -m engine.trace_tool blocks FILE --step N   physical blocks after step N, as CSV
python -m engine.trace_tool check FILE             read it, replay it, and say what it holds

FILE may be `-` for standard input. The exit status is 0, or 1 with a sentence on standard error.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.event_base import plural
from engine.one_line import one_line
from engine.state import CacheState
from engine.trace import Trace, TraceError
from engine.usage import block_table_of

Row = tuple[object, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for. Returns the exit status."""
    options = _options(arguments)
    try:
        trace = Trace.from_json(_read(options.file))
        sys.stdout.write(_COMMANDS[options.command](trace, getattr(options, "step", None)))
    except BrokenPipeError:
        return 0
    except (TraceError, IndexError, OSError, UnicodeDecodeError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 1
    return 0


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
    memory = f"{len(state.arena)} slots in one stretch" if state.arena else f"{state.num_blocks} x {state.block_size}"
    if not state.arena and not state.blocks:
        memory = f"places unknown, {plural(state.findable.num_copies, 'block')} stored"
    known = ", ".join(f"{key} {value}" for key, value in sorted(trace.info.items()) if isinstance(value, str | int))
    return (
        f"A sound trace: {len(trace)} events in {trace.num_steps} steps.\n"
        f"Memory: {memory}; requests: {len(state.requests)}; sequences: {len(state.sequences)}.\n"
        f"Source: {one_line(known) or 'unknown'}.\n"
    )


_COMMANDS = {"print": listing, "table": block_tables_csv, "blocks": blocks_csv, "check": summary}


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
    for view in state.findable.ranks.values():
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


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.trace_tool", description="Look into a trace file.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("print", "one line an event"),
        ("table", "block tables as CSV"),
        ("blocks", "physical blocks as CSV"),
        ("check", "read and replay it"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("file", metavar="FILE", help="a trace in JSON, or - for standard input")
        if name in ("table", "blocks"):
            command.add_argument("--step", type=int, metavar="N", help="after this step (default: the last)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
