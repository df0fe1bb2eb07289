"""The bar above every page of a tab that is in a room, or was invited to one: the browser's end of the room's line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from views import server
from views.kept import forget_kept
from views.room import codes
from views.room.lines import path_of_line
from views.room.room_tab import RoomTab, be_in_room, forget_room, room_tab, tab_from
from views.streamlit_private import uninterrupted

ASSETS = Path(__file__).resolve().parent.parent.parent / "assets" / "room"
KEY, ROOM, FOLLOW = "room_line", "room", "follow"
_STAMP, _LEFT = "room_stamp", "room_left"
LEFT = "You have left the room."


def _read(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


_LINE = st.components.v2.component("room_line", html=_read("line.html"), css=_read("line.css"), js=_read("line.js"))


def draw_room_bar(*, is_room_page: bool) -> None:
    """Call before the page. Nothing is drawn in a tab that has no room."""
    _take_place()
    tab = room_tab()
    code = tab.code if tab is not None else codes.code_from(st.query_params.get(ROOM, ""))
    if len(code) == codes.LENGTH:
        _LINE(key=KEY, data=_data(tab, code, is_room_page), on_identity_change=_take_identity, height="content")


def moved_to() -> str | None:
    """Names the presenter's move that this tab has followed last."""
    stamp: str | None = st.session_state.get(_STAMP)
    return stamp


def leave_room(tab: RoomTab) -> None:
    """For callbacks: this tab is in no room any more."""
    if (room := tab.room) is not None:
        room.leave(tab.member)
    st.session_state[_LEFT] = tab.code
    forget_room()


def _data(tab: RoomTab | None, code: str, is_room_page: bool) -> dict[str, Any]:
    room = None if tab is None else tab.room
    has_left = tab is None and st.session_state.get(_LEFT) == code
    if tab is not None and room is None:
        forget_room()
    return {
        "code": code,
        "shown": codes.shown(code),
        "socket": path_of_line(code),
        "identity": tab.identity(room) if tab is not None and room is not None else None,
        "why_over": LEFT if has_left else server.rooms().why_over(code),
        "is_room_page": is_room_page,
        "moved_to": moved_to(),
    }


@uninterrupted()
def _take_place() -> None:
    """A tab that was moved to the presenter's place drops lesson values of its own: the address says them all."""
    stamp = st.query_params.get(FOLLOW)
    if stamp and stamp != moved_to():
        st.session_state[_STAMP] = stamp
        forget_kept()


def _take_identity() -> None:
    """The browser says what this tab was in its room, or that it is no longer in it."""
    if KEY not in st.session_state:  # the tab has turned a page meanwhile, and its bar says it again
        return
    told = st.session_state[KEY].identity
    if isinstance(told, dict) and told.get("gone"):
        forget_room()
    elif (tab := tab_from(told)) is not None:
        be_in_room(tab)
