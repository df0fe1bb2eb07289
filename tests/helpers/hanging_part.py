"""A part of the GPU day that never ends, and a context without torch for the parts beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu_day.findings import Finding, Remark


class EmptyContext:
    deadline = 0.0

    def release(self) -> None:
        pass


def context_of(_out: Path, _sizes: str) -> EmptyContext:
    return EmptyContext()


def run(_context: EmptyContext) -> Iterator[Finding]:
    yield Remark("about to hang")
    time.sleep(600)
