"""The results to read: as Markdown in `benchmarks/results/paper.md`, and row by row in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.tables import Row, print_table
from course.paper.record import SURE, VERDICTS, Quantity, Record, spread
from course.paper.records import RECORDS
from course.paper.results import Results
from course.paper.step_times import StepTimes


def markdown(results: Results) -> str:
    """The results to read: the machine, the step times, and a table a row."""
    lines = ["# The paper, reproduced", ""]
    lines += [f"- {name}: {value}" for name, value in results.machine.items()]
    lines += ["", "| where | claim | here |", "|---|---|---|"]
    lines += [
        f"| {where_of(record)} | {record.title} | {VERDICTS[record.judge(results.rows.get(record.key))]} |"
        for record in RECORDS
    ]
    lines += ["", "Ours: the smallest and the largest of all traces or rounds. Marks of the paper's numbers:", ""]
    lines += [f"- {line}" for line in marks().splitlines()]
    if results.step_times:
        lines += ["", *_step_time_lines(results.step_times)]
    for record in RECORDS:
        lines += ["", *_record_lines(record, results)]
    return "\n".join(lines) + "\n"


def label_of(quantity: Quantity) -> str:
    """A quantity's name with the system it is about, in English."""
    return f"{quantity.of}: {quantity.name}" if quantity.of else quantity.name


def where_of(record: Record) -> str:
    """Where the claim stands, with its part of the figure, in English."""
    return f"{record.place} ({record.of})" if record.of else record.place


def _record_lines(record: Record, results: Results) -> Iterator[str]:
    measured, date = results.rows.get(record.key), results.dates.get(record.key)
    yield f"## {where_of(record)}: {record.title}"
    yield ""
    yield f"**{VERDICTS[record.judge(measured)]}**. `{record.command}`{f', {date}' if date else ''}"
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


def show_verdicts(records: Sequence[Record], results: Results) -> None:
    """A line a row, and the seconds it took."""
    print()
    print_table(
        [
            {
                "where": where_of(record),
                "claim": record.title,
                "verdict": VERDICTS[record.judge(results.rows.get(record.key))],
                "seconds": f"{results.seconds.get(record.key, 0.0):.1f}",
            }
            for record in records
        ]
    )


def show_record(record: Record, results: Results) -> None:
    """The row: its verdict, and every number beside ours."""
    measured = results.rows.get(record.key)
    print(f"\n{where_of(record)}, {record.title}: {VERDICTS[record.judge(measured)].upper()}")
    rows: list[Row] = []
    for quantity in record.quantities:
        values = measured.values.get(quantity.key, []) if measured else []
        verdict = VERDICTS[quantity.judge(values)] if quantity.is_judged else ""
        rows.append(
            {
                "": label_of(quantity),
                "paper": f"{quantity.printed} ({quantity.sure})",
                "ours": spread(values, quantity.digits),
                "verdict": verdict,
            }
        )
    print_table(rows)
