"""Tools to look closer at the live engine, one at a time: only the chosen one is drawn."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from engine.i18n import N_, _
from views.elements.block_table import request_tables
from views.html_parts import notice
from views.live.export import draw_take_away
from views.live.kernels_eye import SEQUENCE, TOKEN, draw_kernels_eye
from views.live.prefix_cache import draw_prefix_cache
from views.live.sharing_history import draw_sharing
from views.live.slot_microscope import SLOT, draw_microscope
from views.live.time_travel import draw_time_travel
from views.live.tool_settings import begin_tool, waits_to_be_taken
from views.memory_map.component import MapSelection
from views.server.engine_session import EngineSession
from views.url_values import ChoiceRule

TABLES, MICROSCOPE = N_("Block tables"), N_("Slot microscope")
TOOLS: dict[str, Callable[[EngineSession], None]] = {
    MICROSCOPE: draw_microscope,
    N_("Kernel's eye"): draw_kernels_eye,
    N_("Prefix cache"): draw_prefix_cache,
    N_("Forks and copies"): draw_sharing,
    N_("Time travel"): draw_time_travel,
    N_("Download"): draw_take_away,
}
TOOL = "tool"
TOOL_RULE = ChoiceRule(TOOL, N_("Look closer"), (TABLES, *TOOLS), {"Take it away": "Download"})
SECONDS_BETWEEN_FRAMES = 0.25
SHARE_BESIDE_A_TOOL = 0.6
"""Of the window's height, for the map while a tool is open below it: both are in view."""
NOT_YET = N_("The run in this link is being replayed; then this tool opens at the place the link names.")


def draw_tools(session: EngineSession, request_id: str | None, was_running: bool) -> None:
    """The choice of a tool, and the chosen one."""
    tool = st.pills(
        _("Look closer"), [TABLES, *TOOLS], format_func=_, default=TABLES, key=TOOL, required=True, bind="query-params"
    )
    begin_tool()
    if waits_to_be_taken() and session.moment.replay_until is not None:
        st.html(notice(_(NOT_YET)))
    elif tool in TOOLS:
        TOOLS[tool](session)
    elif request_id is not None:
        every = SECONDS_BETWEEN_FRAMES if was_running else None
        st.fragment(_draw_tables, run_every=every, key="tables")(session, request_id)


def map_share() -> float:
    """The part of the window's height that the map may take on a wide page."""
    return 1.0 if st.session_state.get(TOOL, TABLES) == TABLES else SHARE_BESIDE_A_TOOL


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
