"""One row of the reproduction: what the paper says, what was measured here, and whether that agrees.

A verdict has no tolerance of ours. A number that the paper gives as a bound ("2.2 times as many") is reached or not by
each run; where the runs are several (seeds, families of lengths) the claim holds only if all of them reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from course.paper.step_times import StepTimes
from course.paper.workloads import MIXES
from engine.i18n import N_, _

Verdict = Literal["holds", "partly", "does not hold", "not run"]
VERDICTS: dict[Verdict, str] = {
    "holds": N_("holds"),
    "partly": N_("in part"),
    "does not hold": N_("does not hold"),
    "not run": N_("not run"),
}
SURE = {
    "T": N_("read in the paper's text"),
    "L": N_("a label printed inside the figure"),
    "V": N_("measured from the curves of the figure, which prints no number"),
    "D": N_("arithmetic on printed numbers"),
}
NO_NUMBER = "–"
"""Where the paper prints none."""
Task = TypeVar("Task")
Result = TypeVar("Result")
Run = Callable[[Callable[[Task], Result], Sequence[Task]], list[Result]]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of a claim.

    printed: as the paper gives it. sure: a mark of `SURE`, or nothing where it gives none.
    low, high: what every run must reach and not pass, after rounding to `digits`; with neither the number is shown
    beside ours and not judged. neutral: where there would be no effect; a run on the claim's side of it that misses the
    number still has its direction. of: the system it is about.
    """

    key: str
    name: str
    printed: str
    sure: str
    low: float | None = None
    high: float | None = None
    neutral: float | None = None
    digits: int = 2
    of: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether the paper's number is a bound."""
        return self.low is not None or self.high is not None

    def judge(self, values: Sequence[float]) -> Verdict:
        """Over all runs. No value: not run."""
        if not values:
            return "not run"
        reached = [self._is_reached(value) for value in values]
        if all(reached):
            return "holds"
        return "partly" if any(reached) or all(self._has_direction(value) for value in values) else "does not hold"

    def _is_reached(self, value: float) -> bool:
        rounded = round(value, self.digits)
        return (self.low is None or rounded >= self.low) and (self.high is None or rounded <= self.high)

    def _has_direction(self, value: float) -> bool:
        if self.neutral is None:
            return False
        bound = self.low if self.low is not None else self.high
        assert bound is not None
        return (value - self.neutral) * (bound - self.neutral) > 0


@dataclass(frozen=True, slots=True)
class Curve:
    """A table to draw: column `x` against the others. Names are marked for translation, but `of`. None: no value."""

    name: str
    x: str
    unit: str
    rows: list[dict[str, float | None]]
    of: str = ""

    @property
    def columns(self) -> list[str]:
        """The names beside `x`."""
        return list(dict.fromkeys(name for row in self.rows for name in row if name != self.x))


@dataclass(frozen=True, slots=True)
class Measured:
    """What one record measured: the values of each quantity, one a run, and curves."""

    values: dict[str, list[float]]
    curves: list[Curve] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For the file of results."""
        curves = [{"name": c.name, "x": c.x, "unit": c.unit, "rows": c.rows, "of": c.of} for c in self.curves]
        return {"values": self.values, "curves": curves}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Measured:
        """What `as_dict` wrote."""
        return cls(dict(stored["values"]), [Curve(**curve) for curve in stored["curves"]])


@dataclass(frozen=True, slots=True)
class Record:
    """One row. Its texts are marked for translation.

    place: figure or table and section. of: its part of the figure, in names that are not translated.
    setup: what differs from the paper's set-up, and what the paper leaves open.
    measure: None for a row that is timed: the command measures it, alone on its machine.
    why: the reason, for a claim that does not hold here in full.
    two_readings: where the paper's text and its own curves disagree.
    """

    key: str
    place: str
    title: str
    quantities: tuple[Quantity, ...]
    setup: tuple[str, ...]
    measure: Callable[[Setup], Measured] | None
    of: str = ""
    why: str = ""
    two_readings: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether it measures times of a machine, so that nothing else may run meanwhile."""
        return self.measure is None

    @property
    def command(self) -> str:
        """What runs this row alone."""
        return f"python -m benchmarks.paper --only {self.key}"

    def judge(self, measured: Measured | None) -> Verdict:
        """The row's verdict: all its judged numbers hold, none does, or something between."""
        if measured is None:
            return "not run"
        found = {q.judge(measured.values.get(q.key, [])) for q in self.quantities if q.is_judged}
        return "partly" if len(found) > 1 else found.pop()


@dataclass(frozen=True, slots=True)
class Setup:
    """How large a run is. `run(function, tasks)` gives the results in order, perhaps from several processes.

    fills: how often the requests of a trace would fill the memory. step_times: the table measured on this machine.
    known: results that several records need, by function and task.
    """

    run: Run[Any, Any]
    seeds: tuple[int, ...]
    fills: int
    step_times: StepTimes | None
    known: dict[Any, Any] = field(default_factory=dict)

    @property
    def times(self) -> StepTimes:
        """The table. Raises ValueError with a sentence when none was measured."""
        if self.step_times is None:
            raise ValueError(_("Step times are missing: `python -m benchmarks.paper` measures them first."))
        return self.step_times

    def results(
        self, function: Callable[[tuple[Task, StepTimes]], Result], tasks: Iterable[Task]
    ) -> dict[Task, Result]:
        """`function((task, step times))` by task; what is known from another record is not run again."""
        asked = list(dict.fromkeys(tasks))
        missing = [task for task in asked if (function, task) not in self.known]
        found = self.run(function, [(task, self.times) for task in missing])
        self.known.update(zip(((function, task) for task in missing), found, strict=True))
        return {task: self.known[function, task] for task in asked}

    def num_requests(self, mix: str, num_slots: int) -> int:
        """Requests that fill so many slots `fills` times."""
        lengths = MIXES[mix]
        return round(self.fills * num_slots / (lengths.mean_input + lengths.mean_output))


def spread(values: Iterable[float], digits: int = 2) -> str:
    """`13.1 to 13.9`, or one number when all are equal after rounding."""
    rounded = sorted({round(value, digits) + 0.0 for value in values})  # -0.0 becomes 0.0
    if not rounded:
        return "-"
    ends = dict.fromkeys((rounded[0], rounded[-1]))
    return " – ".join(f"{value:.{digits}f}" for value in ends)
