"""The page "The paper, reproduced": its controls, and records and results as tables and charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from course.paper.record import SURE, VERDICTS, Curve, Measured, Record, Setup, spread
from course.paper.records import RECORDS
from course.paper.results import Results
from course.paper.workloads import FAMILIES, MIXES
from engine.i18n import N_, _
from views.elements.charts import line_chart
from views.html_parts import escaped
from views.url_values import ChoiceRule, NumberRule

if TYPE_CHECKING:
    from course.paper.one_trace import OneTrace

KEY = "paper"
FIGURE = ChoiceRule("figure", N_("Figure or table"), tuple(record.key for record in RECORDS))
MIX = ChoiceRule("mix", N_("Lengths like"), tuple(MIXES))
RATE = NumberRule("rate", N_("Requests in 1000 steps"), 1, 200, 10)
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 256, 16)
SLOTS = NumberRule("slots", N_("Slots in the pool"), 2_048, 16_384, 4_096)
SMALL_FILLS, SMALL_SEEDS = 4, (0,)
"""A run from the page: one seed of each family, half the requests."""


def stored_results() -> Results:
    """Those of the repository."""
    return Results.stored()


def label_of(record: Record) -> str:
    """What a reader of the paper looks for."""
    for kind, words in (("fig", _("Fig. {number}")), ("table", _("Table {number}"))):
        if record.key.startswith(kind):
            return words.format(number=record.key.removeprefix(kind))
    return _("Section 6.3")


def claim_of(record: Record) -> str:
    """What it is about, with model and lengths."""
    about = record.of.rpartition(": ")[2]
    return _("{title} ({about})").format(title=_(record.title), about=about) if about else _(record.title)


def heading_of(record: Record) -> str:
    """Where it stands and what it is about."""
    return _("{place}: {claim}").format(place=_(record.place), claim=claim_of(record))


def labels() -> dict[str, str]:
    """By key of the record."""
    words = N_("{place}: {claim}")
    return {record.key: _(words).format(place=label_of(record), claim=claim_of(record)) for record in RECORDS}


def record_of(key: str) -> Record:
    """The record of that key."""
    return next(record for record in RECORDS if record.key == key)


def verdicts_table(results: Results) -> str:
    """All rows as HTML: where, what, and whether it holds."""
    rows = []
    for record in RECORDS:
        verdict = record.judge(results.rows.get(record.key))
        rows.append(
            f'<tr data-row="{escaped(record.key)}" data-verdict="{escaped(verdict)}">'
            f'<th scope="row">{escaped(label_of(record))}</th><td>{escaped(claim_of(record))}</td>'
            f"<td>{escaped(_(VERDICTS[verdict]))}</td></tr>"
        )
    caption = escaped(_("What holds here"))
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in (_("Where"), _("Claim"), _("Here")))
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def quantities_frame(record: Record, measured: Measured | None) -> pd.DataFrame:
    """A row for each number of the claim: the paper's, its mark, ours over all runs, and whether they reach it."""
    rows: list[dict[str, Any]] = []
    for quantity in record.quantities:
        values = measured.values.get(quantity.key, []) if measured else []
        name = _("{of}: {name}").format(of=quantity.of, name=_(quantity.name)) if quantity.of else _(quantity.name)
        rows.append(
            {
                N_("Number"): name,
                N_("Paper"): quantity.printed,
                N_("Mark"): quantity.sure,
                N_("Ours"): spread(values, quantity.digits),
                N_("Holds"): _(VERDICTS[quantity.judge(values)]) if quantity.is_judged else "",
            }
        )
    return pd.DataFrame(rows)


def marks_in(record: Record) -> list[str]:
    """What the marks of this record mean."""
    used = {quantity.sure for quantity in record.quantities}
    return [f"**{mark}**: {_(meaning)}" for mark, meaning in SURE.items() if mark in used]


def curve_frame(curve: Curve) -> pd.DataFrame:
    """The curve as a table."""
    return pd.DataFrame(curve.rows)


def curve_caption(curve: Curve) -> str:
    """What the curve shows, with its unit."""
    caption = _("{name}, {unit}").format(name=_(curve.name), unit=_(curve.unit))
    return _("Batch {number}: {caption}").format(number=curve.of, caption=caption) if curve.of else caption


def curve_chart(curve: Curve) -> go.Figure:
    """A line a column. Sizes that double stand at equal distances."""
    table = curve_frame(curve)
    doubles = curve.x == "block size"
    figure = line_chart(table, curve.x, curve.columns, _(curve.unit))
    figure.update_layout(xaxis={"dtick": None, "type": "category" if doubles else "linear"})
    return figure


def step_times_frame(results: Results) -> pd.DataFrame:
    """The table that the simulations take their times from."""
    if results.step_times is None:
        return pd.DataFrame()
    rows: list[dict[str, Any]] = []
    for row in results.step_times.decode:
        for context, seconds in ((row.short_context, row.short_seconds), (row.long_context, row.long_seconds)):
            rows.append(_step_time(row.num_seqs, row.num_seqs, context, seconds))
    rows += [_step_time(1, tokens, tokens, seconds) for tokens, seconds in results.step_times.prefill]
    return pd.DataFrame(rows)


def _step_time(num_seqs: int, num_tokens: int, context: int, seconds: float) -> dict[str, Any]:
    return {
        N_("Sequences"): num_seqs,
        N_("Tokens computed"): num_tokens,
        N_("Tokens of context"): context,
        N_("Milliseconds"): round(1e3 * seconds, 1),
    }


def run_here(record: Record, results: Results) -> Measured:
    """The row again, on this machine, smaller. Not for a row that is timed."""
    assert record.measure is not None

    def run(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        return [function(task) for task in tasks]

    return record.measure(Setup(run, SMALL_SEEDS, SMALL_FILLS, results.step_times))


@dataclass(frozen=True)
class TraceInputs:
    """What decides the curve at the end of the page."""

    mix: str
    rate: int
    block_size: int
    num_slots: int


def run_trace(inputs: TraceInputs) -> OneTrace:
    """One small trace in the four memories."""
    from course.paper.one_trace import one_trace

    return one_trace(inputs.mix, FAMILIES[0], inputs.rate / 1000, inputs.block_size, inputs.num_slots)


def trace_curve(trace: OneTrace) -> Curve:
    """Requests that run, over time."""
    return Curve(N_("requests at once"), N_("step"), N_("requests"), trace.running)


def latency_frame(trace: OneTrace) -> pd.DataFrame:
    """Steps a token, from a request's arrival to its end."""
    return pd.DataFrame(
        [{N_("Memory"): name, N_("Steps a token"): round(steps, 1)} for name, steps in trace.latency.items()]
    )
