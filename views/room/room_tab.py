"""What one browser tab is in a room: kept in the tab's session, and checked whenever it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from views import server
from views.room.desk import Desk, NotPresenterError, desk
from views.room.room import NotInRoomError, Room

_KEY = "room_tab"


@dataclass(frozen=True)
class RoomTab:
    """`token`: the presenter's, else None."""

    code: str
    member: str
    token: str | None = field(default=None, repr=False)

    @property
    def room(self) -> Room | None:
        """The room, while it is open and this tab is in it."""
        room = server.rooms().find(self.code)
        return room if room is not None and self.member in room.members else None

    @property
    def desk(self) -> Desk | None:
        """The presenter's desk; None for everybody else."""
        room = self.room
        return None if room is None or self.token is None else desk(room, self.token)

    def identity(self, room: Room) -> dict[str, Any]:
        """For the browser to keep."""
        identity: dict[str, Any] = {"member": self.member, "name": room.member(self.member).name}
        return identity | ({"token": self.token, "settings": room.settings.told()} if self.token else {})


def room_tab() -> RoomTab | None:
    tab: RoomTab | None = st.session_state.get(_KEY)
    return tab


def be_in_room(tab: RoomTab) -> None:
    st.session_state[_KEY] = tab


def forget_room() -> None:
    st.session_state.pop(_KEY, None)


def tab_from(told: Any) -> RoomTab | None:
    """What a browser says this tab was, if it is true."""
    if not isinstance(told, dict):
        return None
    token = told.get("token")
    tab = RoomTab(str(told.get("code")), str(told.get("member")), str(token) if token else None)
    try:
        return tab if tab.room is not None and (token is None or tab.desk is not None) else None
    except (NotPresenterError, NotInRoomError):
        return None
