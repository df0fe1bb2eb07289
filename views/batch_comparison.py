"""The batch lesson's counts as tables and charts: reservations against blocks, and blocks used against slots in use."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from engine.scenes.batch import Batch
from engine.scenes.scene import Scene
from engine.usage import usage_of
from engine.waste import percent_fewer_held, waste

REQUESTS = "Requests"
RESERVED, IN_BLOCKS, STORED, FEWER = "Slots reserved", "Slots in blocks", "Tokens stored", "Fewer slots, %"
BLOCKS_USED, SLOTS_IN_USE = "Blocks used, %", "Slots in use, %"
_MARKS = ("square", "circle", "diamond")
_DASHES = ("solid", "dash", "dot")


def comparison_frame(both: Batch) -> pd.DataFrame:
    """One row a number of requests, from 1."""
    rows = []
    for number in both.paged.values[1:]:
        contiguous, paged = both.contiguous.at(number), both.paged.at(number)
        rows.append(
            {
                REQUESTS: number,
                RESERVED: waste(contiguous).num_held,
                IN_BLOCKS: waste(paged).num_held,
                STORED: waste(paged).token_states,
                FEWER: round(percent_fewer_held(paged, contiguous), 1),
            }
        )
    return pd.DataFrame(rows)


def usage_frame(scene: Scene) -> pd.DataFrame:
    """One row a number of requests: what a gauge of blocks says, and what a gauge of slots would."""
    usages = {number: usage_of(scene.at(number)) for number in scene.values}
    return pd.DataFrame(
        {
            REQUESTS: number,
            BLOCKS_USED: round(100 * usage.block_fraction, 1),
            SLOTS_IN_USE: round(100 * usage.slot_fraction, 1),
        }
        for number, usage in usages.items()
    )


def comparison_chart(table: pd.DataFrame) -> go.Figure:
    return _lines(table, (RESERVED, IN_BLOCKS, STORED), "Slots")


def usage_chart(table: pd.DataFrame) -> go.Figure:
    return _lines(table, (BLOCKS_USED, SLOTS_IN_USE), "Percent of the pool")


def _lines(table: pd.DataFrame, columns: Sequence[str], unit: str) -> go.Figure:
    """A line a column. Mark and dash tell them apart without colour."""
    figure = go.Figure()
    for column, mark, dash in zip(columns, _MARKS, _DASHES, strict=False):
        figure.add_scatter(
            x=table[REQUESTS], y=table[column], name=column, mode="lines+markers",
            marker={"symbol": mark, "size": 9}, line={"dash": dash, "width": 2.5},
        )  # fmt: skip
    figure.update_layout(
        height=300,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        xaxis={"title": REQUESTS, "dtick": 1},
        yaxis={"title": unit, "rangemode": "tozero"},
        dragmode=False,
    )
    return figure
