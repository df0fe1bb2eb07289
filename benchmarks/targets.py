"""Holds a run of benchmarks.throughput against the targets for a CPU: met, or missed by how much.

Usage: python -m benchmarks.throughput --json ... > run.json && python -m benchmarks.targets run.json [--markdown]

A ratio is one decode speed over another of the same run. What the run has no row for is said to be missing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables import Row, print_table


@dataclass(frozen=True)
class Target:
    """`ours` decodes at least `factor` times as fast as `theirs`."""

    batch: int
    prompt: int
    ours: str
    theirs: str
    factor: float


TARGETS = (
    Target(1, 16, "cpu-int4", "vllm", 3.0),
    Target(1, 16, "cpu-int4", "transformers-bfloat16", 3.5),
    Target(1, 16, "cpu-int4", "llamacpp", 0.95),
    Target(8, 16, "cpu-int4", "vllm", 1.7),
    Target(16, 16, "cpu-int4", "vllm", 1.25),
    *(Target(batch, 900, "cpu-int4", peer, 1.0) for batch in (1, 16) for peer in ("vllm", "llamacpp")),
    *(Target(batch, 16, "cpu-bfloat16", "vllm", 1.0) for batch in (1, 8, 16)),
    *(Target(batch, 900, "cpu-bfloat16", "vllm", 1.0) for batch in (1, 16)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    run = json.loads(options.run.read_text("utf-8"))
    rows = list(verdicts(run["rows"]))
    if not options.markdown:
        print_table(rows)
        return
    print("\n".join(markdown(run, rows)))


def verdicts(measured: list[dict[str, Any]]) -> Iterator[Row]:
    """One row a target."""
    speed = {(row["batch"], row["prompt"], row["contestant"]): row["decode tokens/s"] for row in measured}
    for target in TARGETS:
        ours, theirs = (speed.get((target.batch, target.prompt, name)) for name in (target.ours, target.theirs))
        row: Row = {
            "batch": target.batch,
            "prompt": target.prompt,
            "ratio": f"{target.ours} : {target.theirs}",
            "target": f"{target.factor:g}",
        }
        if ours is None or theirs is None:
            yield row | {"measured": "-", "verdict": "not in this run"}
        else:
            yield row | {"measured": f"{ours / theirs:.2f}", "verdict": verdict(ours / theirs, target.factor)}


def verdict(ratio: float, factor: float) -> str:
    return "met" if ratio >= factor else f"missed by {100 * (1 - ratio / factor):.0f} %"


def markdown(run: dict[str, Any], rows: list[Row]) -> Iterator[str]:
    """The run as a page: where it ran, every speed, every target."""
    yield f"`{run['command']}`\n"
    yield from (f"- {name}: {value}" for name, value in run["machine"].items())
    yield from (f"- {note}" for note in run["notes"])
    for table in (run["rows"], rows):
        yield ""
        yield from _markdown_table(table)


def _markdown_table(rows: list[Row]) -> Iterator[str]:
    columns = list(rows[0])
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    yield from ("| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows)


if __name__ == "__main__":
    main()
