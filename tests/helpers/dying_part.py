"""A part of the GPU day that takes its process with it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.gpu_day.findings import Finding, Remark


def run(_context: object) -> Iterator[Finding]:
    yield Remark("about to die")
    os._exit(3)
