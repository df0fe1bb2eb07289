"""A part of the GPU day that measures something and then fails."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.gpu_day.findings import Finding, Measured


def run(_context: object) -> Iterator[Finding]:
    yield Measured({"before": 1})
    zero = 0
    yield Measured({"after": 1 / zero})
