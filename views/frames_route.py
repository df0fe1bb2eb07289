"""The live line of the memory map: frames of an engine or of an opened trace, sent over a WebSocket as they come.

Protocol: `assets/memory_map/js/55_live.js`. The path holds the name of the run, which only its own tab was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlparse

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from views import server
from views.frames import FrameStream, News
from views.shown_traces import shown_traces

PATH = "api/frames"
SECONDS_BETWEEN_LOOKS = 0.02
REFUSED, NOT_UNDERSTOOD = 1008, 1003


class HasFrames(Protocol):
    """An engine's session, or a trace that was opened."""

    @property
    def frames(self) -> FrameStream: ...


def path_of(source: HasFrames) -> str:
    """Where the map of this source listens, relative to the page."""
    return f"{PATH}/{source.frames.trace_id}"


async def send_frames(socket: WebSocket) -> None:
    """Serve one map until it hangs up."""
    source = _find(socket.path_params["trace_id"])
    await socket.accept()
    if source is None or not comes_from_our_page(socket):
        await socket.close(REFUSED)
        return
    await follow(socket, weakref.ref(source))


def _find(trace_id: str) -> HasFrames | None:
    return server.open_sessions().find(trace_id) or shown_traces().find(trace_id)


async def follow(socket: WebSocket, find: Callable[[], HasFrames | None]) -> None:
    """Send what the map lacks of the source that `find` gives, whenever there is more. Another source is another
    run, and begins at its start. Holds none: a watched engine can be freed."""
    try:
        greeting = await socket.receive_json()
        trace_id, have = str(greeting["trace_id"]), int(greeting["have"])
    except (ValueError, KeyError, TypeError, OverflowError):
        await socket.close(NOT_UNDERSTOOD)
    except WebSocketDisconnect:
        return
    else:
        await _send_news(socket, find, trace_id, have)


async def _send_news(socket: WebSocket, find: Callable[[], HasFrames | None], trace_id: str, have: int) -> None:
    hung_up = asyncio.create_task(_wait_for_hang_up(socket))
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it hung up while we were sending
        while not hung_up.done():
            if (news := _news(find(), trace_id, have)) is not None:
                await socket.send_text(news.as_json())
                trace_id, have = news.trace_id, news.end
            await asyncio.wait({hung_up}, timeout=SECONDS_BETWEEN_LOOKS)
    hung_up.cancel()


def _news(source: HasFrames | None, trace_id: str, have: int) -> News | None:
    if source is None or (trace_id, have) == (source.frames.trace_id, len(source.frames.texts)):
        return None
    return source.frames.news(trace_id, have)


async def _wait_for_hang_up(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def comes_from_our_page(socket: WebSocket) -> bool:
    """Streamlit checks the origin of its own sockets only. A client that is no browser sends none."""
    origin = socket.headers.get("origin")
    return origin is None or urlparse(origin).netloc == socket.headers.get("host")


FRAMES_ROUTE = WebSocketRoute(f"/{PATH}/{{trace_id}}", send_frames)
