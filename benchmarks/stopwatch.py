"""Where time goes between functions that call each other: each moment counts for the innermost one only."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Stopwatch:
    """`seconds[part]` adds up; a timed function inside another one stops the outer one's clock."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._clock = clock
        self._running: list[str] = []
        self._since = clock()

    def timed(self, part: str, function: Callable[P, R]) -> Callable[P, R]:
        """`function`, counted as `part` whenever it runs."""

        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            self._book()
            self._running.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._book()
                self._running.pop()

        return run

    def _book(self) -> None:
        """Give the time since the last change to whoever had it."""
        now = self._clock()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now
