"""The Room page of a tab that is in no room: join one, start one, or take one over."""

from __future__ import annotations

import streamlit as st

from engine.i18n import N_, _
from views.html_parts import notice, small
from views.room import codes
from views.room.bar import ROOM
from views.room.member import LONGEST_NAME
from views.room.presenter_api import presenter_api
from views.room.quota import RefusedError
from views.room.room import Room
from views.room.rooms import rooms
from views.room.settings import chosen_settings, draw_settings
from views.room.tab import RoomTab, set_room_tab

NO_ROOM = N_("There is no room with this code on this server. Ask the presenter for the code on their screen.")
NO_TOKEN = N_("No room on this server has this token.")
IDEA = N_(
    "A room is for a group: everybody follows the presenter's page and values, or explores alone and "
    "comes back. All prompts go into **one engine as one batch**, so the room sees its own requests "
    "share, wait and be preempted."
)
_PROBLEM = "room_problem"


def draw_join_page() -> None:
    """How to join a room, start one, or take one over with its token."""
    st.markdown(_(IDEA))
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_join()
    with right:
        _draw_start()
    if problem := st.session_state.pop(_PROBLEM, None):
        st.html(notice(problem, "problem"))


def _draw_join() -> None:
    st.header(_("Join a room"))
    st.session_state.setdefault("room_code", codes.code_from(st.query_params.get(ROOM, "")))
    with st.form("join_room"):
        st.text_input(_("Code"), key="room_code", placeholder="ABCD-EFGH")
        st.text_input(_("Your name, if you like"), key="room_name")
        st.form_submit_button(_("Join"), on_click=_join)
    st.html(small(_("Only the presenter can read names.")))


def _draw_start() -> None:
    st.header(_("Start a room"))
    with st.form("start_room"):
        draw_settings()
        st.form_submit_button(_("Start a room"), on_click=_start)
    with st.expander(_("Take over a room you present")), st.form("take_over"):
        st.text_input(_("The presenter's token"), key="room_token", type="password")
        st.form_submit_button(_("Take over"), on_click=_take_over)


def _join() -> None:
    room = rooms().find(codes.code_from(st.session_state["room_code"]))
    if room is None:
        st.session_state[_PROBLEM] = _(NO_ROOM)
        return
    name = st.session_state["room_name"].strip()
    if len(name) > LONGEST_NAME:
        st.session_state[_PROBLEM] = _(
            "Your name has {num_name} characters; the limit is {longest_name}. Shorten it."
        ).format(num_name=len(name), longest_name=LONGEST_NAME)
        return
    try:
        set_room_tab(RoomTab(room.code, room.join(name).id))
    except RefusedError as refusal:
        st.session_state[_PROBLEM] = str(refusal)


def _start() -> None:
    try:
        room = rooms().start(chosen_settings())
        _present(room, room.token)
    except RefusedError as refusal:
        st.session_state[_PROBLEM] = str(refusal)


def _take_over() -> None:
    token = st.session_state["room_token"].strip()
    room = rooms().find(codes.code_of(token)) if token else None
    if room is None:
        st.session_state[_PROBLEM] = _(NO_TOKEN)
    else:
        _present(room, token)


def _present(room: Room, token: str) -> None:
    presenter = presenter_api(room, token)
    member = room.join(_("Presenter"))
    presenter.make_presenter(member.id)
    set_room_tab(RoomTab(room.code, member.id, token))
