"""The batch lesson's counts as tables and charts: reservations against blocks, and blocks used against slots in use."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from engine.scenes.batch import Batch
from engine.scenes.scene import Scene
from engine.usage import usage_of
from engine.waste import percent_fewer_held, waste
from views.charts import line_chart

REQUESTS = "Requests"
RESERVED, IN_BLOCKS, STORED, FEWER = "Slots reserved", "Slots in blocks", "Tokens stored", "Fewer slots, %"
BLOCKS_USED, SLOTS_IN_USE = "Blocks used, %", "Slots in use, %"


def comparison_frame(both: Batch) -> pd.DataFrame:
    """One row a number of requests, from 1."""
    return pd.DataFrame([_compared(both, number) for number in both.paged.values[1:]])


def _compared(both: Batch, number: int) -> dict[str, float]:
    contiguous, paged = both.contiguous.at(number), both.paged.at(number)
    return {
        REQUESTS: number,
        RESERVED: waste(contiguous).num_held,
        IN_BLOCKS: waste(paged).num_held,
        STORED: waste(paged).token_states,
        FEWER: round(percent_fewer_held(paged, contiguous), 1),
    }


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


@dataclass(frozen=True)
class Charted:
    """A table and its chart. Both take longer to make than the rest of the page, so a room that turns to it shares
    them."""

    table: pd.DataFrame
    chart: go.Figure


def charted_comparison(both: Batch) -> Charted:
    table = comparison_frame(both)
    return Charted(table, line_chart(table, REQUESTS, (RESERVED, IN_BLOCKS, STORED), "Slots"))


def charted_usage(scene: Scene) -> Charted:
    table = usage_frame(scene)
    return Charted(table, line_chart(table, REQUESTS, (BLOCKS_USED, SLOTS_IN_USE), "Percent of the pool"))
