"""Whether a change makes decoding on the CPU slower: two checkouts in turns, as pairs.

Usage: python -m benchmarks.before_after BEFORE AFTER [--json] [--pairs 9] [--batch 1 16] [--context 100] [--steps 60]
           [--dtype auto]

BEFORE and AFTER are folders of this repository at two commits. Each turn is a process of its own that decodes with that
folder's engine and names its fastest step: on a machine that does other work, the one that was disturbed least. Who
goes first changes from pair to pair. `ratio` is the decode speed after over the one before, its median and its range
over the pairs; at least 0.97 is no slower.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.tables import Row, progress, show

LEAST_RATIO = 0.97
TURN = """
import json, sys, torch
from benchmarks.scaling import Case, decoding_engine, load_model, seconds_of_steps
dtype, context, steps, *batches = sys.argv[1:]
STEPS = int(steps)
loaded = load_model("smollm2-135m-instruct", dtype=dtype, device=torch.device("cpu"))
print(json.dumps([
    min(seconds_of_steps(decoding_engine(loaded, "auto", Case(int(batch), int(context), 1), 16, STEPS + 3), STEPS))
    for batch in batches
]))
"""
"""What a turn runs, with nothing that either folder may lack; prints the fastest step of each batch in seconds."""


def main() -> None:
    options = parse_options()
    ratios: dict[int, list[float]] = {batch: [] for batch in options.batch}
    fastest: dict[int, dict[str, float]] = {batch: {"before": float("inf"), "after": float("inf")} for batch in ratios}
    arguments = [options.dtype, str(options.context), str(options.steps), *map(str, options.batch)]
    folders = {"before": options.before, "after": options.after}
    for pair in range(options.pairs):
        progress(f"pair {pair + 1} of {options.pairs}")
        order = ("before", "after") if pair % 2 == 0 else ("after", "before")
        turns = {name: take_turn(folders[name], arguments) for name in order}
        for i, batch in enumerate(options.batch):
            ratios[batch].append(turns["before"][i] / turns["after"][i])
            for name in order:
                fastest[batch][name] = min(fastest[batch][name], turns[name][i])
    rows = [row_of(batch, options.context, ratios[batch], fastest[batch]) for batch in options.batch]
    show(rows, as_json=options.json, command=f"python -m benchmarks.before_after {' '.join(sys.argv[1:])}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--context", type=int, default=100)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--dtype", default="auto")
    return parser.parse_args()


def take_turn(folder: Path, arguments: list[str]) -> list[float]:
    """Seconds of the fastest step, by batch."""
    command = [sys.executable, "-c", TURN, *arguments]
    printed = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds: list[float] = json.loads(printed.splitlines()[-1])
    return seconds


def row_of(batch: int, context: int, ratios: list[float], fastest: dict[str, float]) -> Row:
    median = statistics.median(ratios)
    return {
        "batch": batch,
        "context": context,
        "before ms": round(1e3 * fastest["before"], 3),
        "after ms": round(1e3 * fastest["after"], 3),
        "pairs": len(ratios),
        "ratio": round(median, 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "verdict": "no slower" if median >= LEAST_RATIO else "slower",
    }


if __name__ == "__main__":
    main()
