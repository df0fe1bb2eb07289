"""The command that measures the paper's claims: what is timed, what is run, and how the results read."""

from __future__ import annotations

from benchmarks.paper.__main__ import MEASURES
from benchmarks.paper.clock import times_in_turns
from benchmarks.paper.report import markdown
from course.paper.capacity import measure_table_1
from course.paper.record import Setup
from course.paper.records import RECORDS
from course.paper.results import Results

SETUP = Setup(lambda function, tasks: [function(task) for task in tasks], (0,), 1, None)


def test_cases_take_turns_and_the_first_round_is_not_counted() -> None:
    order: list[str] = []
    taken = times_in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)
    assert order == ["a", "b"] * 3
    assert {name: len(times) for name, times in taken.items()} == {"a": 2, "b": 2}


def test_every_row_that_is_timed_is_run_by_the_command_alone() -> None:
    timed = {record.key for record in RECORDS if record.is_timed}
    assert timed == {record.key for record in RECORDS if record.key in MEASURES and record.measure is None}


def test_results_read_row_by_row() -> None:
    text = markdown(Results({"date": "today"}, None, {"table1": measure_table_1(SETUP)}, {"table1": 0.1}))
    assert "| Orca (Max) on OPT-13B: requests at once | 7.00 | L | 7.00 | holds |" in text
    assert "Why: OPT-66B: 21 GB hold 9,557 tokens." in text
