"""What the live page shows of its engine, redrawn several times a second while it runs."""

from __future__ import annotations

import streamlit as st

from engine.usage import usage_of
from views.block_table import request_tables
from views.engine_session import EngineSession, Moment
from views.figures_of_usage import usage_figures
from views.html_parts import notice, sentence_list
from views.labels import OwnerLabels
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
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _draw_memory(moment, request_id, labels)
    with right:
        _draw_text(moment, labels)


def _draw_memory(moment: Moment, request_id: str | None, labels: OwnerLabels) -> None:
    st.subheader("Physical blocks")
    if request_id is not None:
        st.subheader("Block table")
        st.html(request_tables(moment.state, request_id, labels))


def _draw_text(moment: Moment, labels: OwnerLabels) -> None:
    st.subheader("Requests")
    st.html(request_list(moment, labels))
    st.subheader("What happened in this step")
    st.html(sentence_list(moment.narration))
