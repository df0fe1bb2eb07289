"""The Room page of a tab that is in no room: join one, start one, or take one over."""

from __future__ import annotations

import streamlit as st

from views import server
from views.html_parts import notice, small
from views.room import codes
from views.room.bar import ROOM
from views.room.desk import desk
from views.room.limits import RefusedError
from views.room.member import LONGEST_NAME
from views.room.room import Room
from views.room.room_settings import chosen_settings, draw_settings
from views.room.room_tab import RoomTab, be_in_room

LONGEST_TOKEN = 64
NO_ROOM = "There is no room with this code on this server. Ask the presenter for the code on their screen."
NO_TOKEN = "This token opens no room on this server."
IDEA = (
    "A room is for a group: everybody follows the presenter's page and values, or explores alone and comes back. "
    "All prompts go into **one engine as one batch**, so the room sees its own requests share, wait and be preempted."
)
_PROBLEM = "room_problem"


def draw_way_in() -> None:
    st.markdown(IDEA)
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_join()
    with right:
        _draw_start()
    if problem := st.session_state.pop(_PROBLEM, None):
        st.html(notice(problem, "problem"))


def _draw_join() -> None:
    st.header("Join a room")
    st.session_state.setdefault("room_code", codes.code_from(st.query_params.get(ROOM, "")))
    with st.form("join_room"):
        st.text_input("Code", key="room_code", max_chars=16, placeholder="ABCD-EFGH")
        st.text_input("Your name, if you like", key="room_name", max_chars=LONGEST_NAME)
        st.form_submit_button("Join", on_click=_join)
    st.html(small("Only the presenter can read names."))


def _draw_start() -> None:
    st.header("Start a room")
    with st.form("start_room"):
        draw_settings()
        st.form_submit_button("Start a room", on_click=_start)
    with st.expander("Take over a room you present"), st.form("take_over"):
        st.text_input("The presenter's token", key="room_token", max_chars=LONGEST_TOKEN, type="password")
        st.form_submit_button("Take over", on_click=_take_over)


def _join() -> None:
    room = server.rooms().find(codes.code_from(st.session_state["room_code"]))
    if room is None:
        st.session_state[_PROBLEM] = NO_ROOM
        return
    try:
        be_in_room(RoomTab(room.code, room.join(st.session_state["room_name"]).id))
    except RefusedError as refusal:
        st.session_state[_PROBLEM] = str(refusal)


def _start() -> None:
    try:
        room = server.rooms().start(chosen_settings())
        _present(room, room.token)
        st.session_state[SHOWS_TOKEN] = True
    except RefusedError as refusal:
        st.session_state[_PROBLEM] = str(refusal)


def _take_over() -> None:
    token = st.session_state["room_token"].strip()
    room = server.rooms().find(codes.code_of(token)) if token else None
    if room is None:
        st.session_state[_PROBLEM] = NO_TOKEN
    else:
        _present(room, token)


def _present(room: Room, token: str) -> None:
    the_desk = desk(room, token)
    member = room.join("Presenter")
    the_desk.be_presenter(member.id)
    be_in_room(RoomTab(room.code, member.id, token))


SHOWS_TOKEN = "room_shows_token"
"""Whether the token is on the page: from the start of the room until the presenter has noted it."""
