"""What `batch_invariant` costs: the same engine with it and without it, in turn within each round.

Usage: python -m benchmarks.batch_invariant [--json] [--dtypes int4 bfloat16 float32] [--cells 1x16 16x900 ...]
           [--new-tokens 32] [--rounds 5]

`times as long` is the decode time with it over the time without it in the same round, `first` the same of the time to
the first token: the median of the rounds, and the smallest and largest in brackets. `at best` compares the fastest
decode steps of all rounds, those that other work on the machine disturbed least. The first round warms up and is not
counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from itertools import pairwise

from benchmarks.contestants import Contestant, Limits, OurEngine, embedded
from benchmarks.tables import Row, show
from benchmarks.throughput import Cell, decode_speed, measure, pair_of

OFF, ON = "off", "on"


def main() -> None:
    options = parse_options()
    cells = [Cell(batch, prompt, options.new_tokens) for batch, prompt in options.cells]
    limits = Limits(max(cell.batch for cell in cells), max(cell.prompt for cell in cells) + options.new_tokens)
    rows: list[Row] = []
    for dtype in options.dtypes:
        both: dict[str, Contestant] = {
            name: OurEngine(embedded(dtype, "cpu"), "cpu", limits, batch_invariant=name == ON) for name in (OFF, ON)
        }
        for cell in cells:
            rows.append({"dtype": dtype, **row_of(cell, measure(cell, both, options.rounds, float("inf")))})
    show(rows, as_json=options.json, command=f"python -m benchmarks.batch_invariant {' '.join(sys.argv[1:])}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dtypes", nargs="+", default=["int4", "bfloat16"])
    parser.add_argument(
        "--cells",
        nargs="+",
        type=pair_of,
        metavar="BATCHxPROMPT",
        default=[(1, 16), (8, 16), (16, 16), (1, 900), (16, 900)],
    )
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def row_of(cell: Cell, measured: dict[str, list[list[float]]]) -> Row:
    decode = {name: [decode_speed(cell, times) for times in runs] for name, runs in measured.items()}
    first = {name: [times[0] for times in runs] for name, runs in measured.items()}
    step = {name: 1e3 * min(b - a for times in runs for a, b in pairwise(times)) for name, runs in measured.items()}
    return {
        "batch": cell.batch,
        "prompt": cell.prompt,
        "rounds": len(measured[OFF]),
        "tokens/s off": round(statistics.median(decode[OFF]), 1),
        "tokens/s on": round(statistics.median(decode[ON]), 1),
        "step ms off": round(step[OFF], 2),
        "step ms on": round(step[ON], 2),
        "at best": round(step[ON] / step[OFF], 2),
        "times as long": spread([off / on for off, on in zip(decode[OFF], decode[ON], strict=True)]),
        "first": spread([on / off for off, on in zip(first[OFF], first[ON], strict=True)]),
    }


def spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
