"""Experiments in threads: cached by their inputs, bounded, cancelled when nobody waits, and never a traceback."""

from __future__ import annotations

import threading

import pytest

from views.lab.background import INTERNAL_ERROR, MAX_CACHED, MAX_CONCURRENT, Task, TaskCache

PATIENCE = 10.0


def over(task: Task[int]) -> Task[int]:
    assert task.wait(PATIENCE)
    return task


def test_the_same_inputs_run_once_and_other_inputs_again() -> None:
    tasks, calls = TaskCache(), []

    def work(number: int) -> int:
        calls.append(number)
        return number * 2

    first = over(tasks.submit("a", 1, lambda: work(1)))
    assert (first.result, first.error, tasks.submit("a", 1, lambda: work(1))) == (2, "", first)
    assert over(tasks.submit("a", 2, lambda: work(2))).result == 4
    assert over(tasks.submit("b", 1, lambda: work(3))).result == 6
    assert tasks.submit("a", 1, lambda: work(1)) is first
    assert calls == [1, 2, 3]


def test_the_least_recently_used_results_are_dropped() -> None:
    tasks, calls = TaskCache(), []
    kept = over(tasks.submit("a", 0, lambda: 0))
    for number in range(1, MAX_CACHED):
        over(tasks.submit("a", number, lambda: 0))
    assert tasks.submit("a", 0, lambda: 1) is kept
    over(tasks.submit("a", "one more", lambda: 0))
    assert tasks.submit("a", 0, lambda: 1) is kept
    over(tasks.submit("a", 1, lambda: calls.append("again") or 0))
    assert calls == ["again"], "what was not looked at for longest is gone"


@pytest.mark.parametrize("error", [ValueError("The pool has 2 blocks."), MemoryError("No memory.")])
def test_an_expected_error_is_shown_as_its_message(error: Exception) -> None:
    def work() -> int:
        raise error

    task = over(Task(work))
    assert (task.result, task.error) == (None, str(error))


def test_an_unexpected_error_is_one_sentence_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> int:
        raise RuntimeError("inside")

    task = over(Task(work))
    assert task.error == INTERNAL_ERROR
    assert "inside" in caplog.text


def test_concurrency_is_limited_and_a_cancelled_task_never_starts() -> None:
    gate, begun, tasks = threading.Event(), [], TaskCache()

    def work(name: str) -> int:
        begun.append(name)
        gate.wait(PATIENCE)
        return 0

    running = [Task(lambda i=i: work(f"busy {i}")) for i in range(MAX_CONCURRENT)]
    waiting = tasks.submit("a", "old", lambda: work("old"))
    wanted = tasks.submit("a", "new", lambda: work("new"))
    assert not wanted.wait(0.1) and len(begun) == MAX_CONCURRENT
    gate.set()
    for task in [*running, waiting, wanted]:
        over(task)
    assert "new" in begun and "old" not in begun
    assert tasks.submit("a", "old", lambda: 7).wait(PATIENCE), "submitted again, it runs after all"
