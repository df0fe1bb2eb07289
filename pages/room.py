"""The room: one presenter, many attendees, one shared engine."""

from __future__ import annotations

import streamlit as st

from course.pages import ROOM
from engine.i18n import _
from views.html_parts import notice
from views.models.backend_banner import backend_banner
from views.models.loading import wait_for_model
from views.room.attendee_view import draw_picture, draw_prompt, draw_words, open_engine
from views.room.bar import leave_room
from views.room.join_page import draw_join_page
from views.room.presenter_view import (
    draw_controls,
    draw_health,
    draw_invitation,
    draw_people,
    draw_reset,
    draw_token,
)
from views.room.room import Room
from views.room.tab import RoomTab, room_tab
from views.server.engine_session import EngineSession
from views.server.model_registry import ReadyModel, default_model


def draw_room(tab: RoomTab, room: Room) -> None:
    """Where its parts stand, and that the map stays in view, is said in assets/page/style.css by their keys."""
    presenter = tab.presenter_api
    with st.container(key="room_head"):
        st.title(_(ROOM.title))
        if presenter is not None:
            draw_invitation(room, presenter)
        loading = st.container()
    with loading:
        model = wait_for_model(default_model())
        session = open_engine_or_say_why(room, model)
    with st.container(key="room_controls"):
        if presenter is not None:
            draw_controls(room, presenter)
    with st.container(key="room_side"):
        draw_prompt(room, tab)
        draw_words(tab)
        if presenter is not None:
            draw_reset(presenter)
            draw_people(presenter)
            draw_health(room)
            draw_token(room)
        else:
            st.button(_("Leave the room"), key="room_leave", on_click=leave_room, args=(tab,))
        st.html(backend_banner(session.engine.trace.info))
    with st.container(key="room_picture"):
        draw_picture(session, room, tab)


def open_engine_or_say_why(room: Room, model: ReadyModel) -> EngineSession:
    try:
        return open_engine(room, model)
    except (ValueError, MemoryError) as error:
        st.html(notice(f"{error}", "problem"))
        st.stop()


this_tab = room_tab()
this_room = None if this_tab is None else this_tab.room
if this_tab is None or this_room is None:
    st.title(_(ROOM.title))
    draw_join_page()
else:
    with st.container(key="room"):
        draw_room(this_tab, this_room)
