"""What one browser tab is in a room: kept in the tab's session, and checked whenever it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from views.room.presenter_api import NotPresenterError, PresenterApi, presenter_api
from views.room.room import NotInRoomError, Room
from views.room.rooms import rooms

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
        room = rooms().find(self.code)
        return room if room is not None and self.member in room.members else None

    @property
    def presenter_api(self) -> PresenterApi | None:
        """What only the presenter may do; None for everybody else."""
        room = self.room
        return None if room is None or self.token is None else presenter_api(room, self.token)

    def identity(self, room: Room) -> dict[str, Any]:
        """For the browser to keep."""
        identity: dict[str, Any] = {"member": self.member, "name": room.member(self.member).name}
        return identity | ({"token": self.token, "settings": room.settings.as_dict()} if self.token else {})


def room_tab() -> RoomTab | None:
    """What this tab is in its room; None in a tab without one."""
    tab: RoomTab | None = st.session_state.get(_KEY)
    return tab


def set_room_tab(tab: RoomTab) -> None:
    """Keep in the session what this tab is."""
    st.session_state[_KEY] = tab


def clear_room_tab() -> None:
    """This tab is in no room from now on."""
    st.session_state.pop(_KEY, None)


def tab_from(reported: Any) -> RoomTab | None:
    """What a browser says this tab was, if it is true."""
    if not isinstance(reported, dict):
        return None
    token = reported.get("token")
    tab = RoomTab(str(reported.get("code")), str(reported.get("member")), str(token) if token else None)
    try:
        return tab if tab.room is not None and (token is None or tab.presenter_api is not None) else None
    except (NotPresenterError, NotInRoomError):
        return None
