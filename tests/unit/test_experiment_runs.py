"""Experiments in threads: kept by their inputs, bounded, given up when nobody waits, and never a traceback."""

from __future__ import annotations

import threading

import pytest

from views.experiments.runs import BROKEN, MOST_AT_ONCE, MOST_KEPT, Run, Runs

PATIENCE = 10.0


def over(run: Run[int]) -> Run[int]:
    assert run.wait(PATIENCE)
    return run


def test_the_same_inputs_run_once_and_other_inputs_again() -> None:
    runs, calls = Runs(), []

    def work(number: int) -> int:
        calls.append(number)
        return number * 2

    first = over(runs.ask("a", 1, lambda: work(1)))
    assert (first.result, first.problem, runs.ask("a", 1, lambda: work(1))) == (2, "", first)
    assert over(runs.ask("a", 2, lambda: work(2))).result == 4
    assert over(runs.ask("b", 1, lambda: work(3))).result == 6
    assert runs.ask("a", 1, lambda: work(1)) is first
    assert calls == [1, 2, 3]


def test_the_oldest_results_are_dropped_and_a_look_makes_one_new() -> None:
    runs, calls = Runs(), []
    kept = over(runs.ask("a", 0, lambda: 0))
    for number in range(1, MOST_KEPT):
        over(runs.ask("a", number, lambda: 0))
    assert runs.ask("a", 0, lambda: 1) is kept
    over(runs.ask("a", "one more", lambda: 0))
    assert runs.ask("a", 0, lambda: 1) is kept
    over(runs.ask("a", 1, lambda: calls.append("again") or 0))
    assert calls == ["again"], "what was not looked at for longest is gone"


@pytest.mark.parametrize("error", [ValueError("The pool has 2 blocks."), MemoryError("No memory.")])
def test_an_error_with_a_sentence_is_that_sentence(error: Exception) -> None:
    def work() -> int:
        raise error

    run = over(Run(work))
    assert (run.result, run.problem) == (None, str(error))


def test_a_fault_is_one_sentence_and_the_log_has_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> int:
        raise RuntimeError("inside")

    run = over(Run(work))
    assert run.problem == BROKEN
    assert "inside" in caplog.text


def test_so_many_at_once_and_who_waits_for_nobody_never_begins() -> None:
    gate, begun, runs = threading.Event(), [], Runs()

    def work(name: str) -> int:
        begun.append(name)
        gate.wait(PATIENCE)
        return 0

    running = [Run(lambda i=i: work(f"busy {i}")) for i in range(MOST_AT_ONCE)]
    waiting = runs.ask("a", "old", lambda: work("old"))
    wanted = runs.ask("a", "new", lambda: work("new"))
    assert not wanted.wait(0.1) and len(begun) == MOST_AT_ONCE
    gate.set()
    for run in [*running, waiting, wanted]:
        over(run)
    assert "new" in begun and "old" not in begun
    assert runs.ask("a", "old", lambda: 7).wait(PATIENCE), "asked again, it runs after all"
