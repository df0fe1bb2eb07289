"""What everybody in a room does and sees: a prompt of their own, and the one batch of all prompts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from engine.usage import usage_of
from views.address import keep_in_address
from views.engine_session import EngineSession
from views.figures_of_usage import usage_figures
from views.html_parts import escaped, notice
from views.memory_map import memory_map, read_selection
from views.room.bar import moved_to
from views.room.limits import Limits, Spent
from views.room.lines import path_of_frames
from views.room.requests_of_room import requests_of_room
from views.room.room import NotInRoomError, Room
from views.room.room_tab import RoomTab

SECONDS_BETWEEN_LOOKS = 1.0
NOTHING_YET = "No prompt yet. Send one; the presenter makes the steps."
DEFAULT_REPLY = 16
_MAP, _REFUSAL, _AT, _AT_OF = "room_map", "room_refusal", "room_at", "room_at_of"


def draw_prompt(room: Room, tab: RoomTab) -> None:
    """The prompt and how long its reply may be."""
    with st.form("room_prompt_form", clear_on_submit=True):
        st.text_area("Your prompt", key="room_prompt", height=68, max_chars=room.limits.longest_prompt)
        st.slider("New tokens at most", 1, room.limits.longest_reply, DEFAULT_REPLY, key="room_max_tokens")
        st.form_submit_button("Send to the room", on_click=_send, args=(tab,))
    if refusal := st.session_state.pop(_REFUSAL, None):
        st.html(notice(refusal, "problem"))


def draw_picture(session: EngineSession, room: Room, tab: RoomTab) -> None:
    """Figures and requests, then the map. The map hears of steps over its own line; the words look once a second."""
    st.fragment(_draw_words, run_every=SECONDS_BETWEEN_LOOKS, key="room_words")(tab)
    memory_map(
        session.frames.opening(),
        key=_MAP,
        position=_asked_position(session),
        live=path_of_frames(room.code),
        on_move=partial(_moved, session),
    )
    if tab.token is not None:
        at = st.session_state.get(_AT)
        keep_in_address({"at": None if at is None else str(at)})


def share_words(limits: Limits, spent: Spent) -> str:
    """What is left of a person's share."""
    return (
        f"You have sent {spent.prompts} of {limits.prompts} prompts and asked for {spent.tokens} of {limits.tokens} "
        f"new tokens; {spent.under_way} of at most {limits.at_once} are under way."
    )


def _send(tab: RoomTab) -> None:
    """From the session, where the form has just put what was typed."""
    room = tab.room
    if room is None:
        return
    try:
        room.add_prompt(tab.member, str(st.session_state["room_prompt"]), int(st.session_state["room_max_tokens"]))
    except (ValueError, NotInRoomError) as refusal:
        st.session_state[_REFUSAL] = str(refusal)


def _draw_words(tab: RoomTab) -> None:
    room = tab.room
    session = None if room is None else room.engine.session
    if room is None or session is None:
        return
    if tab.token is None:
        st.html(f'<p class="pv-scripted" data-share>{escaped(share_words(room.limits, room.spent(tab.member)))}</p>')
    moment = session.moment
    st.html(usage_figures(moment.step, usage_of(moment.state)))
    if moment.problem:
        st.html(notice(moment.problem, "problem"))
    if room.engine.num_held_back:
        st.html(notice(f"This run has grown long. Prompts that wait for the next one: {room.engine.num_held_back}."))
    is_own = {name for name in moment.state.requests if room.engine.owner_of(name) == tab.member}
    st.html(requests_of_room(moment, is_own) if moment.state.requests else notice(NOTHING_YET))


def _asked_position(session: EngineSession) -> int | None:
    """Where the presenter's map stands, after a move; where the reader left it, else."""
    if st.session_state.get(_AT_OF) != moved_to():
        st.session_state[_AT_OF] = moved_to()
        st.session_state[_AT] = _step_in_address()
        return session.moment.step if st.session_state[_AT] is None else st.session_state[_AT]
    at: int | None = st.session_state.get(_AT)
    return at


def _moved(session: EngineSession) -> None:
    """The reader let go of the map's slider. At the last step, the map follows the run again."""
    shown = read_selection(session.frames.opening(), None, st.session_state[_MAP].position, None)
    st.session_state[_AT] = shown.step if shown.step < session.moment.step else None


def _step_in_address() -> int | None:
    raw = st.query_params.get("at", "")
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 7 else None
