"""Who asks while another computes waits for that result."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from views.made_once import made_once


def test_all_who_ask_at_once_share_one_result() -> None:
    at_once, computed = Barrier(8), []

    @made_once(maxsize=4)
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


def test_the_oldest_results_are_forgotten() -> None:
    computed = []

    @made_once(maxsize=2)
    def double(n: int) -> int:
        computed.append(n)
        return 2 * n

    assert [double(n) for n in (1, 2, 1, 3, 2)] == [2, 4, 2, 6, 4]
    assert computed == [1, 2, 3, 2]


def test_an_error_is_not_kept_and_blocks_nobody() -> None:
    tries = []

    @made_once(maxsize=2)
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
