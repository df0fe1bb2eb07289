"""What came over time: blocks by the server's stream, load by its metrics. Every chart has its table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.remote.flow import Second, every_second
from engine.remote.metrics import MetricsSample
from views.charts import draw_chart, line_chart

TIME = "seconds"
SECONDS_SHOWN = 180
TICKS = 10
_METRICS = (
    ("Requests", "requests", {"num_running": "running", "num_waiting": "waiting", "num_preemptions": "preempted"}),
    ("KV cache in use", "share, 0 to 1", {"kv_usage": "KV usage", "hit_rate": "hit rate"}),
    ("Prefix cache", "tokens so far", {"prefix_queries": "looked up", "prefix_hits": "found"}),
    ("Tokens", "tokens so far", {"prompt_tokens": "of prompts", "generation_tokens": "generated"}),
)
"""Title, unit, and the fields drawn."""


def draw_flow(flow: Sequence[Second]) -> None:
    """Stored and removed in each second, and how many were stored at its end."""
    if not flow:
        return
    table = flow_table(every_second(flow, SECONDS_SHOWN))
    st.subheader("Blocks over time")
    _draw(table, ["stored", "removed", "stored in all"], "blocks", "Blocks over time", "remote_flow", steps=True)


def draw_metrics(samples: Sequence[MetricsSample]) -> None:
    """A chart for each group of figures that this server tells."""
    if not samples:
        return
    st.header("The server's own figures")
    st.markdown(f"Looked at once a second; the newest {SECONDS_SHOWN} looks.")
    sides = st.columns(2)
    for number, (title, unit, fields) in enumerate(_METRICS):
        table = metrics_table(samples[-SECONDS_SHOWN:], fields)
        columns = [column for column in table.columns if column != TIME]
        if columns:
            with sides[number % len(sides)]:
                st.subheader(title)
                _draw(table, columns, unit, title, f"remote_metrics_{number}")


def _draw(
    table: pd.DataFrame, columns: Sequence[str], unit: str, title: str, key: str, *, steps: bool = False
) -> None:
    figure = line_chart(table, TIME, columns, unit, steps=steps)
    figure.update_xaxes(dtick=None, nticks=TICKS)  # rows are not evenly apart
    figure.update_traces(mode="lines")
    draw_chart(figure, table, title, key=key)


def flow_table(flow: Sequence[Second]) -> pd.DataFrame:
    start = flow[0].second
    return pd.DataFrame(
        [
            {TIME: s.second - start, "stored": s.num_stored, "removed": s.num_removed, "stored in all": s.num_copies}
            for s in flow
        ]
    )


def metrics_table(samples: Sequence[MetricsSample], fields: dict[str, str]) -> pd.DataFrame:
    """One row a look; only columns of which the newest look knows the figure."""
    told = {field: name for field, name in fields.items() if getattr(samples[-1], field) is not None}
    start = samples[0].time
    return pd.DataFrame(
        [
            {TIME: round(s.time - start, 1)} | {name: getattr(s, field) for field, name in told.items()}
            for s in samples
        ],
        columns=[TIME, *told.values()],
    )
