"""What came over time: blocks by the server's stream, load by its metrics. Every chart has its table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.i18n import N_, _
from engine.remote.metrics import MetricsSample
from engine.trace.per_second import SecondStats, with_quiet_seconds
from views.elements.charts import draw_chart, line_chart

TIME = N_("seconds")
SECONDS_SHOWN = 180
TICKS = 10
_METRICS = (
    (
        N_("Requests"),
        N_("requests"),
        {"num_running": N_("running"), "num_waiting": N_("waiting"), "num_preemptions": N_("preempted")},
    ),
    (N_("KV cache in use"), N_("share, 0 to 1"), {"kv_usage": N_("KV usage"), "hit_rate": N_("hit rate")}),
    (N_("Prefix cache"), N_("tokens so far"), {"prefix_queries": N_("looked up"), "prefix_hits": N_("found")}),
    (N_("Tokens"), N_("tokens so far"), {"prompt_tokens": N_("of prompts"), "generation_tokens": N_("generated")}),
)
"""Title, unit, and the fields drawn."""


def draw_flow(flow: Sequence[SecondStats]) -> None:
    """Stored and removed in each second, and how many were stored at its end."""
    if not flow:
        return
    table = flow_table(with_quiet_seconds(flow, SECONDS_SHOWN))
    st.subheader(_("Blocks over time"))
    _draw(table, ["stored", "removed", "stored in all"], _("blocks"), _("Blocks over time"), "remote_flow", steps=True)


def draw_metrics(samples: Sequence[MetricsSample]) -> None:
    """A chart for each group of figures that this server tells."""
    if not samples:
        return
    st.header(_("The server's own metrics"))
    st.markdown(_("Read once a second; the latest {seconds_shown} readings.").format(seconds_shown=SECONDS_SHOWN))
    sides = st.columns(2)
    for number, (title, unit, fields) in enumerate(_METRICS):
        table = metrics_table(samples[-SECONDS_SHOWN:], fields)
        columns = [column for column in table.columns if column != TIME]
        if columns:
            with sides[number % len(sides)]:
                st.subheader(_(title))
                _draw(table, columns, _(unit), _(title), f"remote_metrics_{number}")


def _draw(table: pd.DataFrame, columns: Sequence[str], unit: str, title: str, key: str, *, steps: bool = False) -> None:
    figure = line_chart(table, TIME, columns, unit, steps=steps)
    figure.update_xaxes(dtick=None, nticks=TICKS)  # rows are not evenly apart
    figure.update_traces(mode="lines")
    draw_chart(figure, table, title, key=key)


def flow_table(flow: Sequence[SecondStats]) -> pd.DataFrame:
    """One row a second, quiet ones included."""
    start = flow[0].second
    return pd.DataFrame(
        [
            {
                TIME: s.second - start,
                N_("stored"): s.num_stored,
                N_("removed"): s.num_removed,
                N_("stored in all"): s.num_copies,
            }
            for s in flow
        ]
    )


def metrics_table(samples: Sequence[MetricsSample], fields: dict[str, str]) -> pd.DataFrame:
    """One row a look; only columns of which the newest look knows the figure."""
    shown = {field: name for field, name in fields.items() if getattr(samples[-1], field) is not None}
    start = samples[0].time
    return pd.DataFrame(
        [
            {TIME: round(s.time - start, 1)} | {name: getattr(s, field) for field, name in shown.items()}
            for s in samples
        ],
        columns=[TIME, *shown.values()],
    )
