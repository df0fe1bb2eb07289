"""Tools to look closer at the live engine, one at a time: only the chosen one is drawn."""

from __future__ import annotations

import streamlit as st

from views.block_table import request_tables
from views.engine_session import EngineSession
from views.live_picture import SECONDS_BETWEEN_FRAMES
from views.memory_map import MapSelection

TABLES = "Block tables"
TOOLS = (TABLES,)


def draw_tools(session: EngineSession, request_id: str | None, selection: MapSelection, was_running: bool) -> None:
    if request_id is None:
        return
    every = SECONDS_BETWEEN_FRAMES if was_running else None
    st.fragment(_draw_tables, run_every=every, key="tables")(session, request_id)


def _draw_tables(session: EngineSession, request_id: str) -> None:
    st.html(request_tables(session.moment.state, request_id))
