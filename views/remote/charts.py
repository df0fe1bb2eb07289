"""What came over time: blocks, evictions, hit rate and preemptions on one axis, and load. Each chart has its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.i18n import N_, _
from engine.remote.metrics import MetricsSample
from engine.remote.timeline import SECONDS_OF_A_HIT_RATE, TimelineSecond
from views.elements.charts import DASHES, draw_chart, line_chart
from views.html_parts import notice
from views.memory_map.labels import PALETTE

TIME, CLOCK, PERCENT = N_("seconds"), N_("time, UTC"), N_("Percent")
SECONDS_SHOWN = 180
TICKS = 10
ROW_PIXELS, HEAD_PIXELS = 110, 90
ROW_SHARE = 0.78
"""Of its room a row takes so much; the rest is for the title of the next one."""
WITHOUT_ADDRESS = N_(
    "Hit rate, use of the cache and preemptions come from the server's metrics: give its HTTP address."
)
WITHOUT_METRICS = N_("This recording holds no metrics, so hit rate, use of the cache and preemptions are not known.")


@dataclass(frozen=True)
class _Line:
    """`read`: its value in a second. is_state: it holds until the next one, as a count of stored blocks does."""

    name: str
    read: Callable[[TimelineSecond], float | None]
    is_state: bool = False


_ROWS: tuple[tuple[str, tuple[_Line, ...]], ...] = (
    (N_("Blocks stored"), (_Line(N_("blocks stored"), lambda s: s.num_copies, is_state=True),)),
    (
        N_("Blocks in each second"),
        (_Line(N_("stored"), lambda s: s.num_stored), _Line(N_("evicted"), lambda s: s.num_evicted)),
    ),
    (
        PERCENT,
        (
            _Line(N_("hit rate"), lambda s: _percent(s.hit_rate)),
            _Line(N_("cache in use"), lambda s: _percent(s.kv_usage)),
        ),
    ),
    (N_("Preemptions in each second"), (_Line(N_("preempted"), lambda s: s.num_preempted),)),
)
"""Rows of the chart, from the top: title and lines. One that nothing is known of is left out."""
_METRICS = (
    (N_("Requests"), N_("requests"), {"num_running": N_("running"), "num_waiting": N_("waiting")}),
    (N_("Tokens"), N_("tokens so far"), {"prompt_tokens": N_("of prompts"), "generation_tokens": N_("generated")}),
)
"""Title, unit, and the fields drawn."""


def draw_timeline(seconds: Sequence[TimelineSecond], moment: tuple[float, str] | None, missing: str) -> None:
    """Rows of lines over one axis.

    moment: time and name of the moment that the map shows, where it is not the newest. missing: why nothing of the
    metrics is known, said where that is so.
    """
    if not seconds:
        return
    rows = [(title, [line for line in lines if _is_known(line, seconds)]) for title, lines in _ROWS]
    rows = [(title, lines) for title, lines in rows if lines]
    st.header(_("Over time"))
    if any(s.hit_rate is not None for s in seconds):
        said = _("The hit rate is that of the prompt tokens looked up in the last {n} seconds.")
        st.markdown(said.format(n=SECONDS_OF_A_HIT_RATE))
    elif missing and all(s.kv_usage is None for s in seconds):
        st.html(notice(_(missing)))
    draw_chart(_timeline_figure(seconds, rows, moment), timeline_table(seconds, rows), _("Over time"), key="timeline")


def timeline_table(seconds: Sequence[TimelineSecond], rows: Sequence[tuple[str, Sequence[_Line]]]) -> pd.DataFrame:
    """One row a second; a figure that is not known is left empty."""
    lines = [line for _title, lines in rows for line in lines]
    return pd.DataFrame(
        [
            {CLOCK: f"{_clock(s.second):%H:%M:%S}"} | {line.name: _in_words(line.read(s)) for line in lines}
            for s in seconds
        ]
    )


def _timeline_figure(
    seconds: Sequence[TimelineSecond], rows: Sequence[tuple[str, Sequence[_Line]]], moment: tuple[float, str] | None
) -> go.Figure:
    """Made of plain dictionaries at once: Plotly's own way to rows of charts takes ten times as long."""
    times = np.array([s.second for s in seconds], "datetime64[s]")
    share = 1 / len(rows)
    data: list[dict[str, Any]] = []
    titles: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": HEAD_PIXELS + ROW_PIXELS * len(rows), "margin": {"l": 10, "r": 10, "t": 60, "b": 10},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.08, "x": 0}, "dragmode": False,
        "xaxis": {"nticks": TICKS, "anchor": _axis(len(rows))},
    }  # fmt: skip
    for row, (title, lines) in enumerate(rows):
        top = 1 - row * share
        span = {"range": [0, 105]} if title == PERCENT else {"rangemode": "tozero"}
        layout[_axis(row + 1).replace("y", "yaxis")] = span | {
            "domain": [top - ROW_SHARE * share, top],
            "anchor": "x",
        }
        titles.append(_note(_(title), x=0, xref="paper", xanchor="left", y=top))
        for line in lines:
            values = np.array([line.read(s) for s in seconds], float)
            style = {"color": PALETTE[len(data) % len(PALETTE)], "dash": DASHES[len(data) % len(DASHES)]}
            data.append(
                {
                    "type": "scatter", "mode": "lines", "x": times, "y": values,
                    "name": _(line.name), "yaxis": _axis(row + 1), "connectgaps": line.is_state,
                    "line": {"shape": "hv", "width": 2.5, **style},
                }
            )  # fmt: skip
    if moment is not None:
        when, name = _clock(moment[0]).replace(tzinfo=None), moment[1]  # as the times of the lines
        edge = {"color": "#8A8F98", "dash": "dot"}
        layout["shapes"] = [{"type": "line", "x0": when, "x1": when, "y0": 0, "y1": 1, "yref": "paper", "line": edge}]
        titles.append(_note(name, x=when, y=1))
    return go.Figure({"data": data, "layout": layout | {"annotations": titles}})


def _axis(number: int) -> str:
    """Plotly's name of the axis of a row; the first has no number."""
    return "y" if number == 1 else f"y{number}"


def _note(text: str, **place: Any) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "yref": "paper", "yanchor": "bottom", "font": {"size": 13}, **place}


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
                figure = line_chart(table, TIME, columns, _(unit))
                figure.update_xaxes(dtick=None, nticks=TICKS)  # rows are not evenly apart
                figure.update_traces(mode="lines")
                draw_chart(figure, table, _(title), key=f"remote_metrics_{number}")


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


def _is_known(line: _Line, seconds: Sequence[TimelineSecond]) -> bool:
    return any(line.read(s) is not None for s in seconds)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _in_words(value: float | None) -> str:
    """A count, or a share with one decimal."""
    return "" if value is None else f"{value:.1f}" if isinstance(value, float) else f"{value}"


def _clock(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)
