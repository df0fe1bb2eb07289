"""Download buttons for a trace: JSON, CSV tables, an HTML page. Each file is made when its button is pressed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from engine.i18n import _
from engine.trace.export import block_tables_csv, blocks_csv
from engine.trace.trace import Trace
from views.memory_map.notebook import map_document


def draw_downloads(trace_of: Callable[[], Trace], step: int, *, has_blocks: bool, key: str) -> None:
    """`trace_of` returns a trace that no longer grows. The tables are those after `step`."""

    def made(make: Callable[[Trace], str]) -> Callable[[], bytes]:
        return lambda: make(trace_of()).encode("utf-8")

    button = partial(st.download_button, on_click="ignore")
    with st.container(horizontal=True, key=f"downloads_{key}"):
        button(_("Trace (JSON)"), made(Trace.to_json), "trace.json", "application/json", key=f"{key}_json")
        button(_("Page with the map (HTML)"), made(map_document), "map.html", "text/html", key=f"{key}_html")
        if has_blocks:
            tables, blocks = partial(block_tables_csv, step=step), partial(blocks_csv, step=step)
            button(_("Block tables (CSV)"), made(tables), f"block_tables_{step}.csv", "text/csv", key=f"{key}_tables")
            button(_("Physical blocks (CSV)"), made(blocks), f"blocks_{step}.csv", "text/csv", key=f"{key}_blocks")
