"""Callers with the same arguments share one computation; others do not wait."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from tests.helpers.waiting import PATIENCE
from views.server.memoize import memoize


def test_concurrent_callers_share_one_computation() -> None:
    at_once, computed = Barrier(8), []

    @memoize(maxsize=4)
    def squares(n: int) -> list[int]:
        computed.append(n)
        time.sleep(0.05)  # long enough for the others to come meanwhile
        return [n * n]

    def ask(_: int) -> list[int]:
        at_once.wait()
        return squares(3)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(ask, range(8)))
    assert computed == [3]
    assert all(result is results[0] for result in results)


def test_callers_with_other_arguments_do_not_wait() -> None:
    begun, may_end = Event(), Event()

    @memoize(maxsize=4)
    def double(n: int) -> int:
        if n == 5:
            begun.set()
            assert may_end.wait(PATIENCE)
        return 2 * n

    assert double(1) == 2
    with ThreadPoolExecutor(3) as threads:
        slow = threads.submit(double, 5)
        try:
            assert begun.wait(PATIENCE)
            hit, miss = threads.submit(double, 1), threads.submit(double, 2)
            assert (hit.result(PATIENCE), miss.result(PATIENCE)) == (2, 4)
            assert not slow.done()
        finally:
            may_end.set()
        assert slow.result(PATIENCE) == 10


def test_the_least_recently_used_result_is_dropped() -> None:
    computed = []

    @memoize(maxsize=2)
    def double(n: int) -> int:
        computed.append(n)
        return 2 * n

    assert [double(n) for n in (1, 2, 1, 3, 2)] == [2, 4, 2, 6, 4]
    assert computed == [1, 2, 3, 2]


def test_an_exception_is_not_cached_and_releases_waiting_callers() -> None:
    tries = []

    @memoize(maxsize=2)
    def fail_first(n: int) -> int:
        tries.append(n)
        if len(tries) == 1:
            raise ValueError("not yet")
        return n

    with ThreadPoolExecutor(1) as other:
        first, second = other.submit(fail_first, 5), other.submit(fail_first, 5)
        assert isinstance(first.exception(), ValueError)
        assert second.result() == fail_first(5) == 5
    assert tries == [5, 5]
