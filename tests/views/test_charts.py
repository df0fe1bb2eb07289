"""Charts, and the tables beside them."""

from __future__ import annotations

import re

import pandas as pd

from views.elements.charts import frame_table
from views.live.slot_microscope import slot_heatmap


def test_a_gap_in_a_column_of_counts_is_an_empty_cell_and_the_counts_stay_whole() -> None:
    table = pd.DataFrame([{"Step": 1, "Max": 4.0, "Paged": 15}, {"Step": 2, "Max": 3.5, "Paged": None}])
    html = frame_table(table, "At once")
    assert re.findall("<td>(.*?)</td>", html) == ["1", "4.0", "15", "2", "3.5", ""]


def test_colour_bars_of_a_slot_are_labelled_at_both_ends_and_zero() -> None:
    strips = slot_heatmap((0.25, -1.2345, 0.0), (3.0, 0.5, -0.125)).data
    assert [(strip.zmin, strip.colorbar.tickvals, strip.zmax) for strip in strips] == [
        (-1.2345, (-1.2345, 0, 1.2345), 1.2345),
        (-3.0, (-3.0, 0, 3.0), 3.0),
    ]
    assert [strip.colorbar.ticktext for strip in strips] == [("−1.23", "0", "1.23"), ("−3", "0", "3")]
