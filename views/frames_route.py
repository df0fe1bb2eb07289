"""The live line of the memory map: new frames of one tab's engine, sent over a WebSocket as they come.

Protocol: `assets/memory_map/js/55_live.js`. The path holds the name of the run, which only its own tab was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import weakref
from typing import Any
from urllib.parse import urlparse

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from views import server
from views.engine_session import EngineSession

PATH = "api/frames"
SECONDS_BETWEEN_LOOKS = 0.04
REFUSED, NOT_UNDERSTOOD = 1008, 1003


def path_of(session: EngineSession) -> str:
    """Where the map of this session listens, relative to the page."""
    return f"{PATH}/{session.frames.trace_id}"


async def send_frames(socket: WebSocket) -> None:
    """Serve one map until it hangs up."""
    session = server.open_sessions().find(socket.path_params["trace_id"])
    await socket.accept()
    if session is None or not _comes_from_our_page(socket):
        await socket.close(REFUSED)
        return
    try:
        greeting = await socket.receive_json()
        trace_id, have = str(greeting["trace_id"]), int(greeting["have"])
    except (ValueError, KeyError, TypeError):
        await socket.close(NOT_UNDERSTOOD)
    except WebSocketDisconnect:
        return
    else:
        await _follow(socket, weakref.ref(session), trace_id, have)


async def _follow(socket: WebSocket, session: weakref.ref[EngineSession], trace_id: str, have: int) -> None:
    """Send what the map lacks whenever there is more. Holds the session weakly: a watched engine can be freed."""
    hung_up = asyncio.create_task(_wait_for_hang_up(socket))
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it hung up while we were sending
        while not hung_up.done():
            message = _news(session(), trace_id, have)
            if message is not None:
                await socket.send_text(json.dumps(message))
                trace_id, have = message["trace_id"], message["from"] + len(message["frames"])
            await asyncio.wait({hung_up}, timeout=SECONDS_BETWEEN_LOOKS)
    hung_up.cancel()


def _news(session: EngineSession | None, trace_id: str, have: int) -> dict[str, Any] | None:
    if session is None or (trace_id == session.frames.trace_id and have == len(session.frames.messages)):
        return None
    return session.frames.message(trace_id, have)


async def _wait_for_hang_up(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def _comes_from_our_page(socket: WebSocket) -> bool:
    """Streamlit checks the origin of its own sockets only. A client that is no browser sends none."""
    origin = socket.headers.get("origin")
    return origin is None or urlparse(origin).netloc == socket.headers.get("host")


FRAMES_ROUTE = WebSocketRoute(f"/{PATH}/{{trace_id}}", send_frames)
