"""Tables beside charts."""

from __future__ import annotations

import re

import pandas as pd

from views.elements.charts import frame_table


def test_a_gap_in_a_column_of_counts_is_an_empty_cell_and_the_counts_stay_whole() -> None:
    table = pd.DataFrame([{"Step": 1, "Max": 4.0, "Paged": 15}, {"Step": 2, "Max": 3.5, "Paged": None}])
    html = frame_table(table, "At once")
    assert re.findall("<td>(.*?)</td>", html) == ["1", "4.0", "15", "2", "3.5", ""]
