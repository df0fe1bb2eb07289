"""Record real runs of the embedded model, for machines that cannot run it: python -m tools.recorder [FOLDER]

A recording is a trace like any other; its `info` says that it is recorded, when, and on what. Pages say so too.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path

from course.recorded_runs import FOLDER, RUNS, RecordedRun
from engine.trace.trace import Trace


def record(run: RecordedRun, **info: str) -> Trace:
    """The trace of the run on its model, labelled with its title, the date and `info`. Raises ModelLoadError."""
    from engine.engine import Engine  # here, because pages that only show recordings need no torch

    engine = Engine(run.config)
    engine.generate(run.prompts, run.params)
    today = datetime.date.today().isoformat()
    engine.trace.info.update(source="recording", recorded=today, title=run.title, **info)
    return engine.trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Record every run of course/recorded_runs.py into a folder. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.recorder", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help=f"where to (default: {FOLDER.name})")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, run in RUNS.items():
        text = record(run).to_json()
        (folder / f"{name}.json").write_text(text, "utf-8")
        print(f"{name}: {run.title}, {len(text) / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
