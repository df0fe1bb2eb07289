"""The bar above every page of a tab that is in a room or was invited to one. Its script holds the tab's WebSocket."""

from __future__ import annotations

from typing import Any

import streamlit as st

from engine.i18n import N_, _
from views.browser.assets import read_assets, with_connection, with_texts
from views.room import codes
from views.room.network import exposure_of_this_server, qr_code
from views.room.place import PRIVATE
from views.room.rooms import rooms
from views.room.tab import RoomTab, clear_room_tab, room_tab, set_room_tab, tab_from
from views.room.websocket import path_of_tab
from views.server.streamlit_internals import uninterrupted
from views.url_state import clear_url_values

KEY, ROOM, FOLLOW = "room_bar", "room", "follow"
_STAMP, _LEFT = "room_stamp", "room_left"
LEFT = N_("You have left the room.")


_BAR = st.components.v2.component(
    "room_bar",
    html=read_assets("room/bar.html"),
    css=read_assets("room/bar.css"),
    js=with_texts(with_connection(read_assets("room/bar.js"))),
)


def draw_room_bar(*, is_room_page: bool) -> None:
    """Call before the page. Nothing is drawn in a tab that has no room."""
    _take_place()
    tab = room_tab()
    code = tab.code if tab is not None else codes.code_from(st.query_params.get(ROOM, ""))
    if len(code) == codes.LENGTH:
        _BAR(key=KEY, data=_data(tab, code, is_room_page), on_identity_change=_take_identity, height="content")


def moved_to() -> str | None:
    """Names the presenter's move that this tab has followed last."""
    stamp: str | None = st.session_state.get(_STAMP)
    return stamp


def leave_room(tab: RoomTab) -> None:
    """For callbacks: this tab is in no room any more."""
    if (room := tab.room) is not None:
        room.leave(tab.member)
    st.session_state[_LEFT] = tab.code
    clear_room_tab()


def _data(tab: RoomTab | None, code: str, is_room_page: bool) -> dict[str, Any]:
    room = None if tab is None else tab.room
    has_left = tab is None and st.session_state.get(_LEFT) == code
    if tab is not None and room is None:
        clear_room_tab()
    return {
        "code": code,
        "shown": codes.shown(code),
        "socket": path_of_tab(code),
        "identity": tab.identity(room) if tab is not None and room is not None else None,
        "end_reason": _(LEFT) if has_left else rooms().end_reason(code),
        "private_names": PRIVATE,
        "is_room_page": is_room_page,
        "qr": qr_code(exposure_of_this_server().link(code)) if tab is not None and tab.token else None,
        "moved_to": moved_to(),
    }


@uninterrupted()
def _take_place() -> None:
    """A tab that was moved to the presenter's place drops lesson values of its own: the address says them all."""
    stamp = st.query_params.get(FOLLOW)
    if stamp and stamp != moved_to():
        st.session_state[_STAMP] = stamp
        clear_url_values()


def _take_identity() -> None:
    """The browser says what this tab was in its room, or that it is no longer in it."""
    if KEY not in st.session_state:  # the tab has turned a page meanwhile, and its bar says it again
        return
    reported = st.session_state[KEY].identity
    if isinstance(reported, dict) and reported.get("gone"):
        clear_room_tab()
    elif (tab := tab_from(reported)) is not None:
        set_room_tab(tab)
