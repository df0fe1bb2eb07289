"""Everything to learn from a card in one command, made for a machine that is lent for minutes and has no network.

Usage: python -m benchmarks.gpu_day [--seconds 240] [--out FOLDER] [--weights FOLDER] [--sizes auto|card|tiny]
           [--parts NAME ...]

Needs torch, triton, numpy and pytest in any version that runs; what else is missing is said, and the rest goes on.
Results are in FOLDER/results.jsonl and FOLDER/report.txt as soon as they are measured, with the trace of a run to put
into assets/traces. `--weights` is a folder with the parts that `python -m benchmarks.gpu_day.weights` made: they are
joined and checked first. Ends with 1 when a part failed; a target that is missed is told, and is no failure.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.gpu_day.budget import run_parts
from benchmarks.gpu_day.parts import PARTS
from benchmarks.gpu_day.report import Report
from benchmarks.gpu_day.worker import ProcessWorker, Settings


def main() -> int:
    options = parse_options()
    started = time.monotonic()
    if options.weights:
        from benchmarks.gpu_day.weights import join

        print(join(options.weights), flush=True)
    report = Report(options.out)
    worker = ProcessWorker(Settings(options.out, options.sizes))
    parts = [part for part in PARTS if part.name in options.parts]
    try:
        run_parts(parts, worker, report, options.seconds - (time.monotonic() - started))
    finally:
        worker.close()
        report.close()
    return int(any(outcome.status in ("failed", "stopped") for outcome in report.outcomes.values()))


def parse_options() -> argparse.Namespace:
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_day", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=240.0, help="what starts after them is told, and does not run")
    parser.add_argument("--out", type=Path, default=Path("gpu_day_results"))
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--sizes", choices=("auto", "card", "tiny"), default="auto")
    parser.add_argument("--parts", nargs="+", choices=names, default=names)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
