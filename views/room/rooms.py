"""The rooms of this server, each with a thread that steps its engine and looks after it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

import streamlit as st

from engine.i18n import N_, _
from views.room import codes
from views.room.quota import RefusedError
from views.room.room import Room
from views.room.settings import RoomSettings
from views.server.process import collect_garbage_if_due

MOST_ROOMS = 4
POLL_SECONDS = 0.25
SECONDS_FOR_OTHERS = 0.002
"""Between two steps others get at the engine: an unfair lock would keep new prompts out for ever."""
BROKEN = N_("The room has ended because of an error in this app. The server's log has the details.")
MakeRoom = Callable[[str, str, RoomSettings], Room]


def make_room(code: str, token: str, settings: RoomSettings) -> Room:
    """A room with the default limits."""
    return Room(code, token, settings)


class Rooms:
    """Opens rooms, finds them by their code, and keeps each one's engine stepping."""

    def __init__(self, make: MakeRoom = make_room) -> None:
        self._make = make
        self._rooms: dict[str, Room] = {}
        self._ended: deque[tuple[str, str]] = deque(maxlen=100)
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def __len__(self) -> int:
        return len(self._rooms)

    def start(self, settings: RoomSettings) -> Room:
        """A new room under a new token. Raises RefusedError when there are too many."""
        token = codes.new_token()
        return self._open(codes.code_of(token), token, settings)

    def restore(self, token: str, settings: RoomSettings, expected_code: str) -> Room:
        """The room of this token, opened anew when this server does not know it. Raises RefusedError."""
        if codes.code_of(token) != expected_code:
            raise RefusedError(_("This is not the token of this room."))
        return self._open(expected_code, token, settings)

    def _open(self, code: str, token: str, settings: RoomSettings) -> Room:
        with self._lock:
            if code in self._rooms:
                return self._rooms[code]
            if len(self._rooms) >= MOST_ROOMS:
                raise RefusedError(
                    _("This server has {most_rooms} rooms open, the most it allows. End one first.").format(
                        most_rooms=MOST_ROOMS
                    )
                )
            room = self._rooms[code] = self._make(code, token, settings)
        threading.Thread(target=self._keep_stepping, args=(room,), name=f"room {code}", daemon=True).start()
        return room

    def find(self, code: str) -> Room | None:
        """The room of this code, None when there is none."""
        return self._rooms.get(code)

    def end_reason(self, code: str) -> str:
        """Why a room that was here has ended; "" when it is open, or was never here."""
        return dict(self._ended).get(code, "")

    def close_all(self) -> None:
        """The server ends. The engines are closed with all the others."""
        self._stop.set()

    def _keep_stepping(self, room: Room) -> None:
        due = time.monotonic()
        while not room.is_over and not self._stop.is_set():
            try:
                due = _tick(room, due)
            except Exception:
                logging.getLogger(__name__).exception("a room failed")
                room.end(_(BROKEN))
            collect_garbage_if_due(due - time.monotonic())
            self._stop.wait(max(0.0, due - time.monotonic()))
        with self._lock:
            if room.is_over:
                self._ended.append((room.code, room.end_reason))
                self._rooms.pop(room.code, None)


@st.cache_resource(show_spinner=False)
def rooms() -> Rooms:
    """One for the whole server."""
    return Rooms()


def _tick(room: Room, due: float) -> float:
    """Look after the room and make a step of its run. When the next tick is due: a step that took longer than the
    pace delays it, which is the model's time and no latency of the tick."""
    began = time.monotonic()
    pace = room.engine.pace
    has_stepped = room.engine.tick()
    ended = time.monotonic()
    if has_stepped:
        room.engine.tick_latency.record(began - due, ended - began)
    room.engine.restart_if_drained()
    room.housekeeping()
    if not has_stepped or pace is None:
        return time.monotonic() + POLL_SECONDS
    return max(due + pace, ended + SECONDS_FOR_OTHERS)
