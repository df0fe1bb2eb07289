"""The race as charts: where the slots went, beside the paper's figures, and how the lanes fared over time."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from engine.waste import KINDS
from views.charts import line_chart
from views.experiments.race import NAMES_OF_KINDS, PAPER
from views.labels import PALETTE

PATTERNS = ("", "/", "x", ".", "")
"""So that the kinds are told apart without colour."""
DARK, LIGHT = "#1B2733", "#FFFFFF"
INKS = (LIGHT, DARK, DARK, DARK, "rgba(0, 0, 0, 0)")
"""Of the numbers in the bars. What is free has none: its ground is the page's own, light or dark."""
COLOURS = (PALETTE[0], PALETTE[1], PALETTE[2], "#8A8F98", "rgba(138, 143, 152, 0.18)")
SMALLEST_WITH_A_NUMBER = 6.0
"""Percent: below it a number does not fit its part of the bar."""


def split_chart(table: pd.DataFrame) -> go.Figure:
    """Stacked bars, two a memory: our figures and the paper's, which say so below the bar."""
    figure = go.Figure()
    names = ["paper" if row == PAPER else "ours" for row in table["Figures"]]
    for kind, pattern, colour, ink in zip(KINDS, PATTERNS, COLOURS, INKS, strict=True):
        shares = pd.to_numeric(table[NAMES_OF_KINDS[kind]], errors="coerce").fillna(0.0)
        figure.add_bar(
            x=[list(table["Memory"]), names], y=shares, name=NAMES_OF_KINDS[kind],
            marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "size": 7, "solidity": 0.12},
                    "line": {"width": 1, "color": "rgba(138, 143, 152, 0.9)"}},
            text=[f"{share:.0f}" if share >= SMALLEST_WITH_A_NUMBER else "" for share in shares],
            textposition="inside", insidetextanchor="middle", textangle=0, constraintext="none",
            insidetextfont={"color": ink, "size": 14},
        )  # fmt: skip
    figure.update_layout(
        barmode="stack",
        height=420,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"},
        yaxis={"title": "Percent of the memory", "range": [0, 100]},
        dragmode=False,
    )
    return figure


def time_chart(table: pd.DataFrame, measure: str) -> go.Figure:
    """A line a lane; a lane ends when its last request is done."""
    figure = line_chart(table, "Step", tuple(table.columns[1:]), measure, steps=True)
    figure.update_traces(marker_maxdisplayed=12)
    figure.update_layout(xaxis={"dtick": None, "nticks": 12})
    return figure
