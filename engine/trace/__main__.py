"""Look into a trace file from the command line.

python -m engine.trace print FILE             one line an event: step, type, sentence
python -m engine.trace table FILE --step N    block tables after step N, as CSV (without --step: at the end)
python -m engine.trace blocks FILE --step N   physical blocks after step N, as CSV
python -m engine.trace check FILE             read it, replay it, and say what it holds

FILE may be `-` for standard input. The exit status is 0, or 1 with a sentence on standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.trace.export import block_tables_csv, blocks_csv, listing, summary
from engine.trace.trace import Trace, TraceError

_COMMANDS = {"print": listing, "table": block_tables_csv, "blocks": blocks_csv, "check": summary}


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


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.trace", description="Look into a trace file.")
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
