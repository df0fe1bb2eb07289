"""A thread-safe `lru_cache` with single flight: callers with the same arguments wait for one computation and share it.

With `functools.lru_cache` alone each would compute: twenty times, when a room of twenty opens a page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from threading import Lock, RLock
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Entry(Generic[R]):
    """The result for one set of arguments: `results` is empty until it was computed, with `lock` held."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.results: list[R] = []


def memoize(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator. Keeps the last `maxsize` results. Arguments must be hashable, and results must not be modified.

    Callers with other arguments do not wait. An exception goes to the caller that computed and is not kept: the next
    one computes again. `cache_clear()` drops all results, as with `lru_cache`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @lru_cache(maxsize)
        def entry_for(*args: object, **kwargs: object) -> _Entry[R]:
            return _Entry()

        lock = Lock()  # two threads that miss in `lru_cache` at once would get an entry each

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            with lock:
                entry = entry_for(*args, **kwargs)  # type: ignore[arg-type]
            if not entry.results:
                with entry.lock:
                    if not entry.results:
                        entry.results.append(function(*args, **kwargs))
            return entry.results[0]

        ask.cache_clear = entry_for.cache_clear  # type: ignore[attr-defined]
        return ask

    return decorate
