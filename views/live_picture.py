"""What the live page shows of its engine, redrawn several times a second while it runs."""

from __future__ import annotations

import streamlit as st

from engine.usage import usage_of
from views.block_table import request_tables
from views.engine_session import EngineSession
from views.figures_of_usage import usage_figures
from views.frames_route import path_of
from views.html_parts import notice
from views.memory_map import memory_map
from views.request_list import request_list

SECONDS_BETWEEN_FRAMES = 0.25
NOTHING_YET = "Add a request, then press Step: the model reads the prompt and its block table fills."


def draw_picture(session: EngineSession, request_id: str | None, was_running: bool) -> None:
    """Figures and texts, the memory map, the block tables. The map hears of new steps by itself, over its own line;
    the rest draws itself again while the engine runs, and holds no control."""
    every = SECONDS_BETWEEN_FRAMES if was_running else None
    st.fragment(_draw_words, run_every=every, key="words")(session, was_running)
    memory_map(
        session.frames.payload(), key="memory_map", selected_seq=request_id, live=path_of(session)
    )
    if request_id is not None:
        st.fragment(_draw_tables, run_every=every, key="tables")(session, request_id)


def _draw_words(session: EngineSession, was_running: bool) -> None:
    moment = session.moment
    if was_running and not moment.is_running:
        st.rerun()  # the buttons outside must learn that the run is over
    st.html(usage_figures(moment.step, usage_of(moment.state)))
    if moment.problem:
        st.html(notice(moment.problem, "problem"))
    st.html(request_list(moment) if moment.state.requests else notice(NOTHING_YET))


def _draw_tables(session: EngineSession, request_id: str) -> None:
    st.html(request_tables(session.moment.state, request_id))
