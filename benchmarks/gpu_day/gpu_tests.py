"""The tests marked `gpu`, in a process of their own that is ended when its time is up; what has run by then counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, NotHereError, Remark
from benchmarks.gpu_day.pytest_log import FILE_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
MOST_WORKERS = 4
MARGIN = 3.0
"""Seconds before this part is stopped, in which to read what the tests left."""
MOST_FAILURES = 20
"""Told one by one; the rest are counted."""


def run(context: Context) -> Iterator[Finding]:
    """Raises AssertionError after telling them, if tests failed or none ran."""
    if not context.on_card:
        raise NotHereError("the tests marked gpu need a GPU that torch can see")
    # Most of the time goes into compiling, which one process does on one core.
    workers = min(MOST_WORKERS, os.cpu_count() or 1) if find_spec("xdist") else 0
    files, seconds = files_with_gpu_tests(ROOT / "tests"), context.seconds_left() - MARGIN
    yield from results_of(files, ("-m", "gpu"), seconds, workers)


def files_with_gpu_tests(tests: Path) -> list[Path]:
    """All of tests/kernels, whose fixture `target` brings the mark, and the files that set it themselves."""
    marked = [file for file in sorted(tests.rglob("test_*.py")) if "@pytest.mark.gpu" in file.read_text("utf-8")]
    return [tests / "kernels", *(file for file in marked if tests / "kernels" not in file.parents)]


def results_of(files: Sequence[Path], options: Sequence[str], seconds: float, workers: int = 0) -> Iterator[Finding]:
    """Counts, failures and files that cannot be collected; `workers`: of pytest-xdist, 0 for a machine without it.

    Raises AssertionError if something failed or no test ran.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "tests.jsonl")
        log.touch()
        parallel = ["-n", str(workers)] if workers else []
        ended = _run_pytest([*map(str, files), *options, *parallel], log, seconds)
        records = [json.loads(line) for line in log.read_text("utf-8").splitlines() if line.endswith("}")]
    counts = Counter(record["outcome"] for record in records)
    yield Measured({name: counts[name] for name in ("passed", "failed", "skipped", "not collected")})
    wrong = [record for record in records if record["outcome"] in ("failed", "not collected")]
    for record in wrong[:MOST_FAILURES]:
        yield Measured({record["outcome"]: record["test"], "error": record["error"]})
    for reason, count in Counter(record["error"] for record in records if record["outcome"] == "skipped").items():
        yield Remark(f"{count} skipped: {reason}")
    if ended is None:
        yield Remark(f"Ended after {seconds:.0f} s, before all tests had run.")
    if wrong or not counts["passed"]:
        raise AssertionError(f"{len(wrong)} tests or files failed, {counts['passed']} passed, pytest returned {ended}")


def _run_pytest(arguments: Sequence[str], log: Path, seconds: float) -> int | None:
    """Its exit code, or None if it was ended. Options of pyproject.toml that need plugins are left out."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "--strict-markers", "--import-mode=importlib", "-q",
               "--tb=short", "--continue-on-collection-errors", "-p", "benchmarks.gpu_day.pytest_log"]  # fmt: skip
    process = subprocess.Popen(
        [*command, *arguments], cwd=ROOT, env=os.environ | {FILE_VARIABLE: str(log), "PYTHONPATH": _python_path()},
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with the workers that it started
            process.wait()


def _python_path() -> str:
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
