"""Results that many tabs ask for in one moment: the first to come computes, the others wait and share.

With `functools.lru_cache` alone all would compute: twenty times, when a room of twenty turns to a page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from threading import RLock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def made_once(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the last `maxsize` results. Arguments must be hashable, and results must not be changed.

    `cache_clear` forgets them, as with `lru_cache`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kept = lru_cache(maxsize)(function)
        lock = RLock()

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            with lock:
                return kept(*args, **kwargs)  # type: ignore[arg-type]

        ask.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
        return ask

    return decorate
