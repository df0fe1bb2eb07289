"""Plotly charts of tables, and the same tables in words: a chart never stands alone."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from views.html_parts import escaped
from views.labels import PALETTE
from views.words import filled, translated

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
            x=table[x], y=table[column], name=translated(column), mode="lines+markers",
            marker={"symbol": mark, "size": 8, "color": colour},
            line={"dash": dash, "width": 2.5, "color": colour, "shape": "hv" if steps else "linear"},
        )  # fmt: skip
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        xaxis={"title": translated(x), "dtick": max(1, round(len(table) / TICKS))},
        yaxis={"title": translated(unit), "rangemode": "tozero"},
        dragmode=False,
    )
    return figure


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns named in the server's language."""
    return table.rename(columns=translated)


def frame_table(table: pd.DataFrame, caption: str) -> str:
    """A table as HTML that can be read and scrolled by keyboard. Every cell is escaped."""
    caption = translated(caption)
    inner = in_words(table).to_html(index=False, border=0, escape=True)
    inner = inner.replace(">", f"><caption>{escaped(caption)}</caption>", 1).replace("<th>", '<th scope="col">')
    return f'<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}">{inner}</div>'


def draw_chart(figure: go.Figure, table: pd.DataFrame, caption: str, *, key: str) -> None:
    """The chart, and its numbers as a table for whoever does not see it."""
    st.plotly_chart(figure, key=key, width="stretch", config={"displayModeBar": False, "scrollZoom": False})
    with st.expander(filled("{caption}: the same as a table", {"caption": translated(caption)})):
        st.html(frame_table(table, caption))
