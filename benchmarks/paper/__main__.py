"""The paper's claims about memory, measured again: claim, ours and verdict for every row.

Usage: python -m benchmarks.paper [--only KEY ...] [--model NAME] [--seeds 3] [--fills 8] [--save]

Step times of this machine are measured first; then the rows that are times themselves, one after another; then the
simulations, in two processes. A row is printed, and with `--save` written, as soon as it is there. `--only` runs these
rows (`table1`, `fig2`, `fig12a` ...) with the step times that are stored, if there are any. `--save` writes
benchmarks/results/paper.json and .md: a full run replaces them, one of some rows replaces those, on the machine that
the others are from. `--fills` is how often the requests of a trace would fill the memory.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from benchmarks.paper.model_steps import measure_step_times
from benchmarks.paper.report import markdown, marks, show_record, show_verdicts
from benchmarks.paper.timed import TIMED
from benchmarks.tables import describe_machine, progress
from course.paper.record import Measured, Setup
from course.paper.records import RECORDS
from course.paper.results import STORED, Results
from engine.model.weights.embedded import EMBEDDED_MODEL

MEASURES: dict[str, Callable[[Setup], Measured]] = {
    record.key: record.measure for record in RECORDS if record.measure
} | dict(TIMED)
"""By key of the record."""
PROCESSES = 2
SEEDS, FILLS = 3, 8


def main() -> None:
    """Measure, print, and save what was asked for."""
    options = parse_options()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # rows are seen when they are there
    started = time.perf_counter()
    chosen = [record for record in RECORDS if record.key in (options.only or MEASURES)]
    machine = describe_machine() | {"load": f"{os.getloadavg()[0]:.1f} at the start"}
    results = begin(machine, is_part=bool(options.only), is_saved=options.save)
    if results.step_times is None:
        progress("step times of this machine ...")
        results.step_times = measure_step_times(options.model)
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        setup = Setup(in_processes(pool), tuple(range(options.seeds)), options.fills, results.step_times)
        for number, record in enumerate(sorted(chosen, key=lambda record: not record.is_timed), 1):
            progress(f"{number} of {len(chosen)}: {record.key}, {record.title} ...")
            row_started = time.perf_counter()
            try:
                measured = MEASURES[record.key](setup)
            except ValueError as error:  # a trace that is too short for this run; the other rows go on
                progress(f"{record.key} is not run: {error}")
                continue
            results.add(record.key, measured, machine["date"], time.perf_counter() - row_started)
            show_record(record, results)
            if options.save:
                save(results, time.perf_counter() - started)
    show_verdicts(chosen, results)
    print(f"\n{marks()}\n\n{time.perf_counter() - started:.0f} seconds in all")


def begin(machine: dict[str, str], *, is_part: bool, is_saved: bool) -> Results:
    """Results to add rows to: the stored ones for a part of them. Exits when those are of another machine."""
    stored = Results.stored() if is_part else Results()
    if not stored.machine:
        return Results(machine)
    if is_saved and any(stored.machine.get(name) != machine[name] for name in ("processor", "GPU")):
        sys.exit("The stored results are of another machine: run all rows, or without --save.")
    return stored


def save(results: Results, seconds: float) -> None:
    """Write both files. `seconds`: since the run began."""
    if results.rows.keys() == MEASURES.keys() and set(results.dates.values()) == {results.machine["date"]}:
        results.machine["took"] = f"{seconds:.0f} s"
    STORED.write_text(results.to_json(), "utf-8")
    STORED.with_suffix(".md").write_text(markdown(results), "utf-8")


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), metavar="KEY")
    parser.add_argument("--model", default=EMBEDDED_MODEL)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--fills", type=int, default=FILLS)
    parser.add_argument("--save", action="store_true")
    return parser.parse_args()


def in_processes(pool: ProcessPoolExecutor) -> Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]:
    """A `Setup.run` over the pool's processes, with a progress bar."""

    def run(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        done = []
        for result in pool.map(function, tasks):
            done.append(result)
            filled = 30 * len(done) // len(tasks)
            print(f"\r[{'#' * filled:<30}] {len(done)} of {len(tasks)}", end="", file=sys.stderr, flush=True)
        if done:
            print(file=sys.stderr)
        return done

    return run


if __name__ == "__main__":
    main()
