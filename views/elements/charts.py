"""Plotly charts of tables, and the same tables in words: a chart never stands alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.i18n import _
from views.html_parts import escaped
from views.memory_map.labels import PALETTE

MARKS = ("square", "circle", "diamond", "cross")
DASHES = ("solid", "dash", "dot", "dashdot")
HEIGHT = 300
TICKS = 12


def line_chart(table: pd.DataFrame, x: str, columns: Sequence[str], unit: str, *, steps: bool = False) -> go.Figure:
    """A line a column over column `x`. Mark and dash tell the lines apart without colour.

    steps: values hold until the next one, as counts of memory do.
    """
    figure = go.Figure()
    for column, mark, dash, colour in zip(columns, MARKS, DASHES, PALETTE, strict=False):
        figure.add_scatter(
            x=table[x], y=table[column], name=_(column), mode="lines+markers",
            marker={"symbol": mark, "size": 8, "color": colour},
            line={"dash": dash, "width": 2.5, "color": colour, "shape": "hv" if steps else "linear"},
        )  # fmt: skip
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        xaxis={"title": _(x), "dtick": max(1, round(len(table) / TICKS))},
        yaxis={"title": unit, "rangemode": "tozero"},
        dragmode=False,
    )
    return figure


def mark_moments(figure: go.Figure, moments: Mapping[int, str]) -> None:
    """A dotted upright line with its words at each of these places of the x axis, words one below the other."""
    for number, (place, words) in enumerate(moments.items()):
        figure.add_vline(
            x=place, line_dash="dot", line_color="#8A8F98", annotation_text=words, annotation_yshift=-16 * (number % 4)
        )


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns named in the server's language."""
    return table.rename(columns=_)


def frame_table(table: pd.DataFrame, caption: str) -> str:
    """A table as HTML that can be read and scrolled by keyboard. Cells are escaped; one without a value is empty."""
    gaps = [str(name) for name in table if table[name].isna().any()]  # pandas makes floats of counts beside a gap
    filled = {name: table[name].convert_dtypes().astype(object).where(table[name].notna(), "") for name in gaps}
    inner = in_words(table.assign(**filled)).to_html(index=False, border=0, escape=True)
    inner = inner.replace(">", f"><caption>{escaped(caption)}</caption>", 1).replace("<th>", '<th scope="col">')
    return f'<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}">{inner}</div>'


def draw_chart(figure: go.Figure, table: pd.DataFrame, caption: str, *, key: str) -> None:
    """The chart, and its numbers as a table for whoever does not see it."""
    st.plotly_chart(figure, key=key, width="stretch", config={"displayModeBar": False, "scrollZoom": False})
    with st.expander(_("{caption}: the same as a table").format(caption=caption)):
        st.html(frame_table(table, caption))
