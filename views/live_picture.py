"""What the live page shows of its engine, redrawn several times a second while it runs."""

from __future__ import annotations

import streamlit as st

from engine.usage import usage_of
from views.block_table import request_tables
from views.engine_session import EngineSession, Moment
from views.figures_of_usage import usage_figures
from views.html_parts import notice
from views.memory_map import memory_map
from views.request_list import labels_of, request_list

SECONDS_BETWEEN_FRAMES = 0.25
NOTHING_YET = "Add a request, then press Step: the model reads the prompt and its block table fills."


def draw_picture(session: EngineSession, request_id: str | None, was_running: bool) -> None:
    """Figures, blocks, table and texts. Draws itself again while the engine runs; holds no control."""
    every = SECONDS_BETWEEN_FRAMES if was_running else None
    st.fragment(_draw, run_every=every, key="picture")(session, request_id, was_running)


def _draw(session: EngineSession, request_id: str | None, was_running: bool) -> None:
    moment = session.moment()
    if was_running and not moment.is_running:
        st.rerun()  # the buttons outside must learn that the run is over
    labels = labels_of(moment.state)
    st.html(usage_figures(moment.step, usage_of(moment.state)))
    if moment.problem:
        st.html(notice(moment.problem, "problem"))
    if not moment.state.requests:
        st.html(notice(NOTHING_YET))
        return
    st.html(request_list(moment, labels))
    memory_map(moment.payload, key="memory_map", selected_seq=_first_sequence(moment, request_id))
    if request_id is not None:
        st.html(request_tables(moment.state, request_id, labels))


def _first_sequence(moment: Moment, request_id: str | None) -> str | None:
    return None if request_id is None else moment.state.requests[request_id].seq_ids[0]
