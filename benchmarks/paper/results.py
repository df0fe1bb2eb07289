"""The file of results: what was measured, on which machine and when, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.paper.record import SURE, VERDICTS, Measured, Quantity, Record, spread
from benchmarks.paper.records import RECORDS
from benchmarks.paper.step_times import StepTimes

STORED = Path(__file__).resolve().parents[1] / "results" / "paper.json"
FIGURES = 6
"""Significant ones in the file."""


@dataclass
class Results:
    """machine: as `benchmarks.tables.describe_machine` says, and what else is known of the run. rows and seconds: by
    key of the record.
    """

    machine: dict[str, str] = field(default_factory=dict)
    step_times: StepTimes | None = None
    rows: dict[str, Measured] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """The file's text."""
        rows = {
            record.key: {
                "verdict": record.judge(self.rows[record.key]),
                "command": record.command,
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
        return cls(stored["machine"], times, rows, {key: row["seconds"] for key, row in stored["rows"].items()})

    @classmethod
    def stored(cls) -> Results:
        """Those that are part of the repository; none where the file is missing."""
        return cls.from_json(STORED.read_text("utf-8")) if STORED.exists() else cls()

    def to_markdown(self) -> str:
        """The same to read: the machine, the step times, and a table a row."""
        lines = ["# The paper, reproduced", ""]
        lines += [f"- {name}: {value}" for name, value in self.machine.items()]
        lines += ["", "| where | claim | here |", "|---|---|---|"]
        lines += [
            f"| {where_of(record)} | {record.title} | {VERDICTS[record.judge(self.rows.get(record.key))]} |"
            for record in RECORDS
        ]
        lines += ["", "Ours: the smallest and the largest of all traces. Marks of the paper's numbers:", ""]
        lines += [f"- {line}" for line in marks().splitlines()]
        if self.step_times:
            lines += ["", *_step_time_lines(self.step_times)]
        for record in RECORDS:
            lines += ["", *_record_lines(record, self.rows.get(record.key))]
        return "\n".join(lines) + "\n"


def label_of(quantity: Quantity) -> str:
    """A quantity's name with the system it is about, in English."""
    return f"{quantity.of}: {quantity.name}" if quantity.of else quantity.name


def where_of(record: Record) -> str:
    """Where the claim stands, with its part of the figure, in English."""
    return f"{record.place} ({record.of})" if record.of else record.place


def _record_lines(record: Record, measured: Measured | None) -> Iterator[str]:
    yield f"## {where_of(record)}: {record.title}"
    yield ""
    yield f"**{VERDICTS[record.judge(measured)]}**. `{record.command}`"
    yield ""
    yield "| | paper | mark | ours | |"
    yield "|---|---|---|---|---|"
    for quantity in record.quantities:
        values = measured.values.get(quantity.key, []) if measured else []
        verdict = VERDICTS[quantity.judge(values)] if quantity.is_judged else ""
        ours = spread(values, quantity.digits)
        yield f"| {label_of(quantity)} | {quantity.printed} | {quantity.sure} | {ours} | {verdict} |"
    yield ""
    for curve in measured.curves if measured else []:
        yield f"{curve.of} {curve.name}, {curve.unit}".strip()
        yield ""
        names = [curve.x, *curve.columns]
        yield "| " + " | ".join(names) + " |"
        yield "|" + "---|" * len(names)
        for row in curve.rows:
            yield "| " + " | ".join("" if (v := row.get(name)) is None else f"{v:.4g}" for name in names) + " |"
        yield ""
    yield from (f"- {sentence}" for sentence in record.setup)
    if record.two_readings:
        yield f"- {record.two_readings}"
    if record.why and record.judge(measured) not in ("holds", "not run"):
        yield f"- Why: {record.why}"


def _step_time_lines(times: StepTimes) -> Iterator[str]:
    yield f"## Step times, {times.model}"
    yield ""
    yield "| sequences | context of all | ms | context of all | ms |"
    yield "|---|---|---|---|---|"
    for row in times.decode:
        short, long = 1e3 * row.short_seconds, 1e3 * row.long_seconds
        yield f"| {row.num_seqs} | {row.short_context} | {short:.1f} | {row.long_context} | {long:.1f} |"
    yield ""
    yield "| tokens of a prompt | ms |"
    yield "|---|---|"
    yield from (f"| {tokens} | {1e3 * seconds:.1f} |" for tokens, seconds in times.prefill)


def marks() -> str:
    """What the marks mean."""
    return "\n".join(f"{mark}: {meaning}" for mark, meaning in SURE.items())


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{FIGURES}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
