"""The live line of the memory map: frames of an engine or of an opened trace, sent over a WebSocket as they come.

Protocol: `assets/memory_map/js/55_live.js`. The path holds the name of the run, which only its own tab was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlparse

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from views import server
from views.frames import FrameStream
from views.shown_traces import shown_traces

PATH = "api/frames"
SECONDS_BETWEEN_LOOKS = 0.02
REFUSED, NOT_UNDERSTOOD = 1008, 1003
_TEXTS: weakref.WeakKeyDictionary[FrameStream, list[str]] = weakref.WeakKeyDictionary()
"""Each frame as JSON, written once for all who watch. Only the server's own loop comes here."""


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
                await socket.send_text(_as_json(news))
                trace_id, have = news.trace_id, news.start + len(news.texts)
            await asyncio.wait({hung_up}, timeout=SECONDS_BETWEEN_LOOKS)
    hung_up.cancel()


@dataclass(frozen=True)
class News:
    """Frames of a run from number `start` on, each as JSON."""

    trace_id: str
    start: int
    texts: list[str]


def _news(source: HasFrames | None, trace_id: str, have: int) -> News | None:
    if source is None:
        return None
    frames = source.frames
    is_known = trace_id == frames.trace_id
    if is_known and have == len(frames.messages):
        return None
    start = min(max(have, 0), len(frames.messages)) if is_known else 0
    return News(frames.trace_id, start, _texts_of(frames)[start:])


def _texts_of(frames: FrameStream) -> list[str]:
    texts = _TEXTS.setdefault(frames, [])
    texts += [json.dumps(message) for message in frames.messages[len(texts) :]]
    return texts


def _as_json(news: News) -> str:
    """What `FrameStream.message` would give."""
    return f'{{"trace_id": {json.dumps(news.trace_id)}, "from": {news.start}, "frames": [{", ".join(news.texts)}]}}'


async def _wait_for_hang_up(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def comes_from_our_page(socket: WebSocket) -> bool:
    """Streamlit checks the origin of its own sockets only. A client that is no browser sends none."""
    origin = socket.headers.get("origin")
    return origin is None or urlparse(origin).netloc == socket.headers.get("host")


FRAMES_ROUTE = WebSocketRoute(f"/{PATH}/{{trace_id}}", send_frames)
