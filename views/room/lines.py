"""A room's two kinds of WebSocket: the line of each tab, and the frames of the shared engine.

    /api/room/{code}           the tab says who it is, hears where the presenter is, says "I'm stuck"
    /api/room/{code}/frames    what the memory map plays (protocol: assets/memory_map/js/55_live.js)

The line's protocol (the other end is assets/room/line.js):

    it says     {"member", "name", "token"?, "settings"?}           first; with a token, the room is opened if need be
    it says     {"stuck": true}                                     an attendee
    it says     {"place": {"path", "query"}, "number"?}             the presenter: where their browser is now
    we say      {"state": "missing" | "stranger" | "over", "why"}   and close
    we say      {"state": "open", "place", "stamp", "is_stuck", "people"?, "heard"?}    whenever something has changed

The presenter's tab numbers its moves, and hears which was the last to come: one that was lost is told again. A message
that makes no sense closes the line. The join code allows watching; names and moving need the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import asdict
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from views import server
from views.frames_route import NOT_UNDERSTOOD, REFUSED, comes_from_our_page, follow
from views.room.desk import Desk, NotPresenterError, desk
from views.room.limits import RefusedError
from views.room.place import place_from
from views.room.room import NotInRoomError, Room
from views.room.settings import settings_from

PATH = "api/room"
LONGEST_MESSAGE = 8_000
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_BETWEEN_MESSAGES = 0.05
"""A tab that talks faster than this is heard at this pace."""


class NonsenseError(ValueError):
    """A message that no page of ours sends."""


def path_of_line(code: str) -> str:
    """Relative to the page."""
    return f"{PATH}/{code}"


def path_of_frames(code: str) -> str:
    return f"{PATH}/{code}/frames"


async def serve_line(socket: WebSocket) -> None:
    await socket.accept()
    if not comes_from_our_page(socket):
        await socket.close(REFUSED)
        return
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it hung up while we were sending
        try:
            await _serve(socket, await _receive(socket))
        except NonsenseError:
            await socket.close(NOT_UNDERSTOOD)


async def _serve(socket: WebSocket, greeting: dict[str, Any]) -> None:
    room = await _find(socket.path_params["code"], greeting)
    if room is None:
        why = server.rooms().why_over(socket.path_params["code"])
        await _say_goodbye(socket, {"state": "over", "why": why} if why else {"state": "missing"})
        return
    try:
        line = Line(socket, room, greeting)
    except (NotInRoomError, RefusedError, NotPresenterError) as refusal:
        await _say_goodbye(socket, {"state": "stranger", "why": str(refusal)})
        return
    await line.serve()


async def _find(code: str, greeting: dict[str, Any]) -> Room | None:
    """The room; a presenter's token opens again one that this server does not know (it was started anew)."""
    room = server.rooms().find(code)
    if room is not None or not greeting.get("token") or server.rooms().why_over(code):
        return room
    token, settings = str(greeting["token"]), settings_from(greeting.get("settings"))
    with contextlib.suppress(RefusedError):
        return await asyncio.to_thread(server.rooms().restore, token, settings, expected_code=code)
    return None


class Line:
    """One tab's line. Raises NotInRoomError, RefusedError or NotPresenterError when the tab is not let in."""

    def __init__(self, socket: WebSocket, room: Room, greeting: dict[str, Any]) -> None:
        token = greeting.get("token")
        self._socket = socket
        self._room = room
        self._desk = desk(room, str(token)) if token else None
        self._member = room.readmit(str(greeting.get("member")), str(greeting.get("name", ""))).id
        if self._desk is not None:
            self._desk.be_presenter(self._member)

    async def serve(self) -> None:
        """Until either side ends it."""
        self._room.came(self._member)
        listening = asyncio.create_task(self._listen())
        try:
            await self._tell(listening)
        finally:
            self._room.went(self._member)
            listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening  # for what it raised

    async def _tell(self, listening: asyncio.Task[None]) -> None:
        told = -1
        while not listening.done():
            if told != self._room.version:
                told = self._room.version
                if self._room.is_over or self._member not in self._room.members:
                    await _say_goodbye(self._socket, {"state": "over", "why": self._room.why_over})
                    return
                await self._socket.send_text(json.dumps(self._news()))
            await asyncio.wait({listening}, timeout=SECONDS_BETWEEN_LOOKS)

    def _news(self) -> dict[str, Any]:
        room, member = self._room, self._room.member(self._member)
        news = {
            "state": "open",
            "place": None if room.place is None else asdict(room.place),
            "stamp": room.stamp,
            "is_stuck": member.is_stuck,
        }
        if self._desk is None:
            return news
        return news | {"people": self._counts(self._desk), "heard": member.moves_heard}

    @staticmethod
    def _counts(the_desk: Desk) -> dict[str, int]:
        """No names: the presenter's bar is on the projector."""
        people = the_desk.people()
        return {"num_joined": people.num_joined, "num_here": len(people.names), "num_stuck": len(people.stuck)}

    async def _listen(self) -> None:
        while True:
            message = await _receive(self._socket)
            with contextlib.suppress(NotInRoomError):  # it has left on the page while this was on its way
                self._take(message)
            await asyncio.sleep(SECONDS_BETWEEN_MESSAGES)

    def _take(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("stuck"), bool):
            self._room.set_stuck(self._member, message["stuck"])
        elif self._desk is not None and (place := place_from(message.get("place"))) is not None:
            self._note_number(message.get("number"))
            self._desk.move_to(place)
        else:
            raise NonsenseError

    def _note_number(self, number: Any) -> None:
        if isinstance(number, int):
            self._room.member(self._member).moves_heard = number


async def _receive(socket: WebSocket) -> dict[str, Any]:
    """The next message. Raises NonsenseError, WebSocketDisconnect."""
    try:
        text = await socket.receive_text()
        message = json.loads(text) if len(text) <= LONGEST_MESSAGE else None
    except (ValueError, KeyError, RecursionError) as error:
        raise NonsenseError from error
    if not isinstance(message, dict):
        raise NonsenseError
    return message


async def _say_goodbye(socket: WebSocket, message: dict[str, Any]) -> None:
    await socket.send_text(json.dumps(message))
    await socket.close()


async def send_frames(socket: WebSocket) -> None:
    """The frames of whatever run the room is at; the map starts afresh when that changes."""
    room = server.rooms().find(socket.path_params["code"])
    await socket.accept()
    if room is None or not comes_from_our_page(socket):
        await socket.close(REFUSED)
    else:
        await follow(socket, lambda: room.engine.session)


ROOM_ROUTES = [
    WebSocketRoute(f"/{PATH}/{{code}}", serve_line),
    WebSocketRoute(f"/{PATH}/{{code}}/frames", send_frames),
]
