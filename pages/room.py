"""The room: one presenter, many attendees, one shared engine."""

from __future__ import annotations

import streamlit as st

from views.backend_banner import backend_banner
from views.course import ROOM
from views.html_parts import notice
from views.model_loading import wait_for_model
from views.room.bar import leave_room
from views.room.engine_of_room import open_engine
from views.room.presenting import draw_controls, draw_health, draw_invitation, draw_people
from views.room.room import Room
from views.room.room_tab import RoomTab, room_tab
from views.room.taking_part import draw_picture, draw_prompt
from views.room.way_in import draw_way_in
from views.server import default_model


def draw_room(tab: RoomTab, room: Room) -> None:
    the_desk = tab.desk
    if the_desk is not None:
        draw_invitation(room)
    model = wait_for_model(default_model())
    try:
        session = open_engine(room, model)
    except (ValueError, MemoryError) as error:
        st.html(notice(f"{error}", "problem"))
        st.stop()
    left, right = st.columns([3, 2], gap="medium")
    with left:
        draw_prompt(room, tab)
    with right:
        if the_desk is not None:
            draw_controls(room, the_desk)
            draw_people(the_desk)
            draw_health(room)
        else:
            st.button("Leave the room", key="room_leave", on_click=leave_room, args=(tab,))
        st.html(backend_banner(session.engine.trace.info))
    draw_picture(session, room, tab)


st.title(ROOM.title)
this_tab = room_tab()
this_room = None if this_tab is None else this_tab.room
if this_tab is None or this_room is None:
    draw_way_in()
else:
    draw_room(this_tab, this_room)
