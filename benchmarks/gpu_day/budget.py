"""The time there is: which part still starts, and when it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from benchmarks.gpu_day.findings import Finding, Outcome
from benchmarks.gpu_day.parts import Part
from benchmarks.gpu_day.report import Report


class Worker(Protocol):
    """Where parts run (benchmarks/gpu_day/worker.py)."""

    def run(self, part: Part, seconds: float, on_finding: Callable[[Finding], None]) -> Outcome:
        """Run one part for at most so many seconds. It raises nothing of what the part raises."""
        ...


def run_parts(
    parts: Iterable[Part], worker: Worker, report: Report, seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:  # fmt: skip
    """Run as many parts as `seconds` allow, in order, and report each as it goes."""
    deadline = clock() + seconds
    for part in parts:
        left = deadline - clock()
        if left < part.needs:
            detail = f"{max(left, 0):.0f} s were left, and it needs {part.needs:g}"
            report.ended(part.name, Outcome("not started", detail, 0.0))
            continue

        def on_finding(finding: Finding, name: str = part.name) -> None:
            report.found(name, finding)

        report.ended(part.name, worker.run(part, min(left, part.share * seconds), on_finding))
