"""Readiness checks of this machine for a page: `python -m tools.doctor` in a process of its own, and its report.

A process of its own because the doctor refuses every network connection of the process it runs in.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from course.finding import Finding
from engine.i18n import N_, _

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 60.0
COMMAND = (sys.executable, "-m", "tools.doctor", "--json", "--skip", "Port")
"""Without the port check: the page that starts it is served on that port."""
TRY_AGAIN = N_(
    "Press the button again: files and compiled kernels are cached now, so it is faster. If it stops here "
    "again, run `python -m tools.doctor` in a terminal: it has no time limit and shows the error itself."
)


@dataclass(frozen=True)
class ReadinessReport:
    """What one run of the doctor found. `clock`: local time of the run; `seconds`: how long it took."""

    findings: tuple[Finding, ...]
    clock: str
    seconds: float

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are not ready."""
        return tuple(finding for finding in self.findings if not finding.is_ready)


def run_doctor(command: Sequence[str] = COMMAND, timeout: float = TIMEOUT_SECONDS) -> ReadinessReport:
    """Run the doctor and return what it found before it ended or timed out; an unanswered check is not ready.

    Raises OSError when the doctor cannot be started.
    """
    started = time.perf_counter()
    doctor = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        printed, _errors = doctor.communicate(timeout=timeout)
        why = _("The process that runs the checks ended during this one.")
    except subprocess.TimeoutExpired:
        doctor.kill()
        printed, _errors = doctor.communicate()
        why = _(
            "No answer after {timeout:.0f} s, the limit for all checks together. The checks after it were not run."
        ).format(timeout=timeout)
    return ReadinessReport(tuple(_findings(printed, why)), time.strftime("%H:%M"), time.perf_counter() - started)


def _findings(printed: str, why_unanswered: str) -> Iterator[Finding]:
    """The findings in the doctor's JSON lines. The check that was started last may have no answer."""
    running = "The doctor"
    for line in map(json.loads, printed.splitlines()):
        running = line.get("checking", "")
        if not running:
            yield Finding(line["name"], line["found"], line["fix"])
    if running:
        yield Finding(running, why_unanswered, _(TRY_AGAIN))


class LatestReport:
    """The newest report of this server; a refresh is shared by all tabs that ask for one at the same time."""

    def __init__(self, run: Callable[[], ReadinessReport] = run_doctor) -> None:
        self._run = run
        self._lock = threading.Lock()
        self.report: ReadinessReport | None = None

    def refresh(self) -> None:
        """Run the checks again, or wait for the run that is under way."""
        before = self.report
        with self._lock:
            if self.report is before:
                self.report = self._run()


@st.cache_resource(show_spinner=False)
def latest_report() -> LatestReport:
    """One for the whole server."""
    return LatestReport()
