"""A room's two kinds of WebSocket: one for each tab's messages, one for the frames of the shared engine.

    /api/room/{code}           the tab says who it is, hears where the presenter is, says "I'm stuck"
    /api/room/{code}/frames    what the memory map plays (protocol: assets/memory_map/js/55_live.js), also by GET

The protocol of a tab's messages (the other end is assets/room/bar.js):

    it says     {"member", "name", "token"?, "settings"?}           first; with a token, the room is opened if need be
    it says     {"stuck": true}                                     an attendee
    it says     {"place": {"path", "query"}, "number"?}             the presenter: where their browser is now
    we say      {"state": "missing" | "stranger" | "over", "why"}   and close
    we say      {"state": "open", "place", "stamp", "is_stuck", "people"?, "last_move"?}  whenever it changes

The presenter's tab numbers its moves, and `last_move` is the last one received: one that was lost is sent again. An
invalid message closes the connection. The join code allows watching; names and moving need the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.status import HTTP_404_NOT_FOUND
from starlette.websockets import WebSocket, WebSocketDisconnect

from views.room.place import place_from
from views.room.presenter_api import NotPresenterError, PresenterApi, presenter_api
from views.room.quota import RefusedError
from views.room.room import NotInRoomError, Room
from views.room.rooms import rooms
from views.room.settings import settings_from
from views.server.frames_route import (
    POLICY_VIOLATION,
    UNSUPPORTED_DATA,
    frames_response,
    is_same_origin,
    stream_frames,
)

PATH = "api/room"
LONGEST_MESSAGE = 8_000
POLL_SECONDS = 0.1
SECONDS_BETWEEN_MESSAGES = 0.05
"""Messages of one tab are read no faster than this."""


class InvalidMessageError(ValueError):
    """A message that this protocol does not have."""


def path_of_tab(code: str) -> str:
    """Relative to the page."""
    return f"{PATH}/{code}"


def path_of_frames(code: str) -> str:
    """Path of the WebSocket for frames, relative to the page."""
    return f"{PATH}/{code}/frames"


async def serve_tab(socket: WebSocket) -> None:
    """The endpoint of a tab's WebSocket."""
    await socket.accept()
    if not is_same_origin(socket):
        await socket.close(POLICY_VIOLATION)
        return
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it hung up while we were sending
        try:
            await _serve(socket, await _receive(socket))
        except InvalidMessageError:
            await socket.close(UNSUPPORTED_DATA)


async def _serve(socket: WebSocket, greeting: dict[str, Any]) -> None:
    room = await _find(socket.path_params["code"], greeting)
    if room is None:
        why = rooms().end_reason(socket.path_params["code"])
        await _send_and_close(socket, {"state": "over", "why": why} if why else {"state": "missing"})
        return
    try:
        connection = TabConnection(socket, room, greeting)
    except (NotInRoomError, RefusedError, NotPresenterError) as refusal:
        await _send_and_close(socket, {"state": "stranger", "why": str(refusal)})
        return
    await connection.serve()


async def _find(code: str, greeting: dict[str, Any]) -> Room | None:
    """The room; a presenter's token opens again one that this server does not know (it was started anew)."""
    room = rooms().find(code)
    if room is not None or not greeting.get("token") or rooms().end_reason(code):
        return room
    token, settings = str(greeting["token"]), settings_from(greeting.get("settings"))
    with contextlib.suppress(RefusedError):
        return await asyncio.to_thread(rooms().restore, token, settings, expected_code=code)
    return None


class TabConnection:
    """One tab's WebSocket. Raises NotInRoomError, RefusedError or NotPresenterError when the tab is not let in."""

    def __init__(self, socket: WebSocket, room: Room, greeting: dict[str, Any]) -> None:
        token = greeting.get("token")
        self._socket = socket
        self._room = room
        self._presenter = presenter_api(room, str(token)) if token else None
        self._member = room.readmit(str(greeting.get("member")), str(greeting.get("name", ""))).id
        if self._presenter is not None:
            self._presenter.make_presenter(self._member)

    async def serve(self) -> None:
        """Send and receive until either side closes."""
        self._room.connected(self._member)
        listening = asyncio.create_task(self._receive_messages())
        try:
            await self._send_updates(listening)
        finally:
            self._room.disconnected(self._member)
            listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening  # for what it raised

    async def _send_updates(self, listening: asyncio.Task[None]) -> None:
        sent_version = -1
        while not listening.done():
            if sent_version != self._room.version:
                sent_version = self._room.version
                if self._room.is_over or self._member not in self._room.members:
                    await _send_and_close(self._socket, {"state": "over", "why": self._room.end_reason})
                    return
                await self._socket.send_text(json.dumps(self._state_message()))
            await asyncio.wait({listening}, timeout=POLL_SECONDS)

    def _state_message(self) -> dict[str, Any]:
        room, member = self._room, self._room.member(self._member)
        news = {
            "state": "open",
            "place": None if room.place is None else asdict(room.place),
            "stamp": room.stamp,
            "is_stuck": member.is_stuck,
        }
        if self._presenter is None:
            return news
        return news | {"people": self._counts(self._presenter), "last_move": member.last_move}

    @staticmethod
    def _counts(presenter: PresenterApi) -> dict[str, int]:
        """No names: the presenter's bar is on the projector."""
        people = presenter.people()
        return {"num_joined": people.num_joined, "num_here": len(people.names), "num_stuck": len(people.stuck)}

    async def _receive_messages(self) -> None:
        while True:
            message = await _receive(self._socket)
            with contextlib.suppress(NotInRoomError):  # it has left on the page while this was on its way
                self._handle(message)
            await asyncio.sleep(SECONDS_BETWEEN_MESSAGES)

    def _handle(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("stuck"), bool):
            self._room.set_stuck(self._member, message["stuck"])
        elif self._presenter is not None and (place := place_from(message.get("place"))) is not None:
            self._record_move(message.get("number"))
            self._presenter.move_to(place)
        else:
            raise InvalidMessageError

    def _record_move(self, number: Any) -> None:
        if isinstance(number, int):
            self._room.member(self._member).last_move = number


async def _receive(socket: WebSocket) -> dict[str, Any]:
    """The next message. Raises InvalidMessageError, WebSocketDisconnect."""
    try:
        text = await socket.receive_text()
        message = json.loads(text) if len(text) <= LONGEST_MESSAGE else None
    except (ValueError, KeyError, RecursionError) as error:
        raise InvalidMessageError from error
    if not isinstance(message, dict):
        raise InvalidMessageError
    return message


async def _send_and_close(socket: WebSocket, message: dict[str, Any]) -> None:
    await socket.send_text(json.dumps(message))
    await socket.close()


async def send_frames(socket: WebSocket) -> None:
    """The frames of whatever run the room is at; the map starts afresh when that changes."""
    room = rooms().find(socket.path_params["code"])
    await socket.accept()
    if room is None or not is_same_origin(socket):
        await socket.close(POLICY_VIOLATION)
    else:
        await stream_frames(socket, lambda: room.engine.session)


def fetched_frames(request: Request) -> Response:
    """GET: the same frames for a map whose WebSocket a proxy refuses."""
    room = rooms().find(request.path_params["code"])
    return Response(status_code=HTTP_404_NOT_FOUND) if room is None else frames_response(request, room.engine.session)


ROOM_ROUTES = (
    WebSocketRoute(f"/{PATH}/{{code}}", serve_tab),
    WebSocketRoute(f"/{PATH}/{{code}}/frames", send_frames),
    Route(f"/{PATH}/{{code}}/frames", fetched_frames),
)
