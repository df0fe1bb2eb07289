"""Tools to look closer at the live engine, one at a time: only the chosen one is drawn."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from views.block_table import request_tables
from views.engine_session import EngineSession
from views.html_parts import notice
from views.lab_choice import begin_tool, waits_to_be_taken
from views.lab_kernels_eye import SEQUENCE, TOKEN, draw_kernels_eye
from views.lab_microscope import SLOT, draw_microscope
from views.lab_sharing import draw_sharing
from views.lab_take_away import draw_take_away
from views.lab_time_travel import draw_time_travel
from views.live_picture import SECONDS_BETWEEN_FRAMES
from views.memory_map import MapSelection

TABLES, MICROSCOPE = "Block tables", "Slot microscope"
TOOLS: dict[str, Callable[[EngineSession], None]] = {
    MICROSCOPE: draw_microscope,
    "Kernel's eye": draw_kernels_eye,
    "Forks and copies": draw_sharing,
    "Time travel": draw_time_travel,
    "Take it away": draw_take_away,
}
TOOL = "tool"
NOT_YET = "The run of this address is being repeated; then this opens where the address says."


def draw_tools(session: EngineSession, request_id: str | None, was_running: bool) -> None:
    """The choice of a tool, and the chosen one."""
    tool = st.pills("Look closer", [TABLES, *TOOLS], default=TABLES, key=TOOL, required=True, bind="query-params")
    begin_tool()
    if waits_to_be_taken() and session.moment.goal is not None:
        st.html(notice(NOT_YET))
    elif tool in TOOLS:
        TOOLS[tool](session)
    elif request_id is not None:
        every = SECONDS_BETWEEN_FRAMES if was_running else None
        st.fragment(_draw_tables, run_every=every, key="tables")(session, request_id)


def take_selection(selection: MapSelection) -> None:
    """What was clicked in the map becomes what the tools look at. A click on a slot opens the microscope."""
    if selection.slot is not None:
        st.session_state[SLOT] = selection.slot
        if selection.kind == "slot" and st.session_state.get(TOOL) == TABLES:
            st.session_state[TOOL] = MICROSCOPE
    if selection.seq_id is not None and selection.token_position is not None:
        st.session_state[SEQUENCE], st.session_state[TOKEN] = selection.seq_id, selection.token_position


def _draw_tables(session: EngineSession, request_id: str) -> None:
    st.html(request_tables(session.moment.state, request_id))
