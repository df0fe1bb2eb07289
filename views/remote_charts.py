"""What came over time: blocks by the server's stream, load by its metrics. Every chart has its table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.remote.flow import Second
from engine.remote.metrics import MetricsSample
from views.charts import draw_chart, line_chart

TIME = "seconds"
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
    table = flow_table(flow)
    st.subheader("Blocks over time")
    columns = ["stored", "removed", "stored in all"]
    draw_chart(line_chart(table, TIME, columns, "blocks", steps=True), table, "Blocks over time", key="remote_flow")


def draw_metrics(samples: Sequence[MetricsSample]) -> None:
    """A chart for each group of figures that this server tells."""
    if not samples:
        return
    st.header("The server's own figures")
    sides = st.columns(2)
    for number, (title, unit, fields) in enumerate(_METRICS):
        table = metrics_table(samples, fields)
        columns = [column for column in table.columns if column != TIME]
        if columns:
            with sides[number % len(sides)]:
                st.subheader(title)
                draw_chart(line_chart(table, TIME, columns, unit), table, title, key=f"remote_metrics_{number}")


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
