"""What a step changes on the live page: buttons, figures, texts, the map and the tools.

It is a fragment: a click in it draws it again and leaves prompt and settings alone, which halves the time to the new
picture. Where its parts stand, and that the map stays in view, is said in assets/page/style.css by their keys.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from engine.i18n import N_, _
from views.html_parts import notice
from views.live.controls import draw_buttons, draw_request_choice
from views.live.drag import draw_drag
from views.live.link import asked_position, draw_address, view_step
from views.live.request_list import request_list
from views.live.run_history import history_of, usage_line
from views.live.tools import SECONDS_BETWEEN_FRAMES, draw_tools, map_share, take_selection
from views.memory_map.component import memory_map, read_selection
from views.server.engine_session import EngineSession
from views.server.frames_route import frames_path
from views.server.sessions import Tab

SECONDS_BETWEEN_ADDRESSES = 1.0
NOTHING_YET = N_("Add a request, then press Step: the model reads the prompt and its block table fills.")
_MAP = "memory_map"


@st.fragment
def draw_engine(tab: Tab, session: EngineSession) -> None:
    """Everything of the page that a step changes."""
    if session.is_closed:
        st.rerun()  # it was reset: the page makes another one
    moment = session.moment
    with st.container(key="live_bar"):
        draw_buttons(tab, session, moment)
        draw_drag(session, moment)
    with st.container(key="live_requests"):
        chosen = draw_request_choice(session, moment)
        every = SECONDS_BETWEEN_FRAMES if moment.is_running else None
        st.fragment(_draw_words, run_every=every, key="words")(session, moment.is_running)
        line_of_address = st.container()
    with st.container(key="live_picture"):
        _draw_map(session, chosen)
    with st.container(key="live_tools"):
        draw_tools(session, chosen, moment.is_running)
    with line_of_address:  # drawn last: it tells what the tools show
        every = SECONDS_BETWEEN_ADDRESSES if moment.is_running else None
        st.fragment(draw_address, run_every=every, key="address_line")(session)


def _draw_map(session: EngineSession, request_id: str | None) -> None:
    """It hears of new steps by itself, over its own WebSocket."""
    memory_map(
        session.frames.initial_payload(),
        key=_MAP,
        selected_seq=request_id,
        position=asked_position(),
        share=map_share(),
        live=frames_path(session),
        on_move=partial(_moved, session),
        on_select=partial(_selected, session),
    )


def _moved(session: EngineSession) -> None:
    """The reader let go of the map's slider."""
    reported = st.session_state[_MAP]
    shown = read_selection(session.frames.initial_payload(), None, reported.position, None)
    view_step(shown.step, session.moment)


def _selected(session: EngineSession) -> None:
    reported = st.session_state[_MAP]
    take_selection(read_selection(session.frames.initial_payload(), None, reported.position, reported.selection))


def _draw_words(session: EngineSession, was_running: bool) -> None:
    """Figures and texts. They draw themselves again while the engine runs, and hold no control."""
    moment = session.moment
    if was_running and not moment.is_running:
        st.rerun()  # the buttons outside must learn that the run is over
    # Always two elements: a third one of an earlier moment could stay on the page until the next run clears it.
    if moment.replay_until is None:
        st.empty()
    else:
        last_step = moment.replay_until
        st.progress(
            moment.step / max(last_step, 1),
            text=_("Replaying the run: step {step} of {last_step}").format(step=moment.step, last_step=last_step),
        )
    words = [usage_line(history_of(session))]
    if moment.problem:
        words.append(notice(moment.problem, "problem"))
    words.append(request_list(moment) if moment.state.requests else notice(_(NOTHING_YET)))
    st.html("".join(words))
