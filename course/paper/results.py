"""The file of results: what was measured, on which machine and when, row by row."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course.paper.record import Measured
from course.paper.records import RECORDS
from course.paper.step_times import StepTimes

STORED = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "paper.json"
FIGURES = 6
"""Significant ones in the file."""


@dataclass
class Results:
    """machine: as `benchmarks.tables.describe_machine` says, and what else is known of the run. By key of the record:
    rows, seconds that each took, and dates of the runs that measured it.
    """

    machine: dict[str, str] = field(default_factory=dict)
    step_times: StepTimes | None = None
    rows: dict[str, Measured] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, measured: Measured, date: str, seconds: float) -> None:
        """Put a row in, in the place of the one that was there."""
        self.rows[key], self.dates[key], self.seconds[key] = measured, date, seconds

    def to_json(self) -> str:
        """The file's text."""
        rows = {
            record.key: {
                "verdict": record.judge(self.rows[record.key]),
                "command": record.command,
                "date": self.dates.get(record.key, ""),
                "seconds": round(self.seconds.get(record.key, 0.0), 1),
                **_rounded(self.rows[record.key].as_dict()),
            }
            for record in RECORDS
            if record.key in self.rows
        }
        times = self.step_times and _rounded(self.step_times.as_dict())
        return json.dumps({"machine": self.machine, "step_times": times, "rows": rows}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """What `to_json` wrote."""
        stored = json.loads(text)
        times = stored["step_times"] and StepTimes.from_dict(stored["step_times"])
        rows = {key: Measured.from_dict(row) for key, row in stored["rows"].items()}
        seconds = {key: row["seconds"] for key, row in stored["rows"].items()}
        dates = {key: row["date"] for key, row in stored["rows"].items()}
        return cls(stored["machine"], times, rows, seconds, dates)

    @classmethod
    def stored(cls) -> Results:
        """Those that are part of the repository; none where the file is missing."""
        return cls.from_json(STORED.read_text("utf-8")) if STORED.exists() else cls()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{FIGURES}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
