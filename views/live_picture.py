"""What the live page shows of its engine, redrawn several times a second while it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from engine.usage import usage_of
from views.engine_session import EngineSession
from views.figures_of_usage import usage_figures
from views.frames_route import path_of
from views.html_parts import notice
from views.live_link import asked_position, look_at
from views.memory_map import MapSelection, memory_map, read_selection
from views.request_list import request_list

SECONDS_BETWEEN_FRAMES = 0.25
NOTHING_YET = "Add a request, then press Step: the model reads the prompt and its block table fills."
_MAP = "memory_map"


def draw_picture(
    session: EngineSession, request_id: str | None, was_running: bool, on_select: Callable[[MapSelection], None]
) -> None:
    """Figures and texts, then the memory map. The map hears of new steps by itself, over its own line; the words
    draw themselves again while the engine runs, and hold no control."""
    every = SECONDS_BETWEEN_FRAMES if was_running else None
    st.fragment(_draw_words, run_every=every, key="words")(session, was_running)
    memory_map(
        session.frames.opening(),
        key=_MAP,
        selected_seq=request_id,
        position=asked_position(),
        live=path_of(session),
        on_move=partial(_moved, session),
        on_select=partial(_selected, session, on_select),
    )


def _moved(session: EngineSession) -> None:
    """The reader let go of the map's slider."""
    reported = st.session_state[_MAP]
    shown = read_selection(session.frames.opening(), None, reported.position, None)
    look_at(shown.step, session.moment)


def _selected(session: EngineSession, take: Callable[[MapSelection], None]) -> None:
    reported = st.session_state[_MAP]
    take(read_selection(session.frames.opening(), None, reported.position, reported.selection))


def _draw_words(session: EngineSession, was_running: bool) -> None:
    moment = session.moment
    if was_running and not moment.is_running:
        st.rerun()  # the buttons outside must learn that the run is over
    if moment.goal is not None:
        st.progress(moment.step / max(moment.goal, 1), text=f"Repeating the run: step {moment.step} of {moment.goal}")
    st.html(usage_figures(moment.step, usage_of(moment.state)))
    if moment.problem:
        st.html(notice(moment.problem, "problem"))
    st.html(request_list(moment) if moment.state.requests else notice(NOTHING_YET))
