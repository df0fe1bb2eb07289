"""A part of the GPU day that tells which process it runs in."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.gpu_day.findings import Finding, Remark


def run(_context: object) -> Iterator[Finding]:
    yield Remark(str(os.getpid()))
