"""WebSocket that streams frames of an engine session or of an opened trace to a memory map as they come.

Protocol: `assets/memory_map/js/55_live.js`. The path holds the run's random `trace_id`, which only its own tab knows.
Where a proxy refuses the WebSocket, the map fetches the same frames from the same path by plain requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlparse

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.status import HTTP_204_NO_CONTENT, HTTP_400_BAD_REQUEST, HTTP_404_NOT_FOUND
from starlette.websockets import WebSocket, WebSocketDisconnect

from views.memory_map.frames import FrameDelta, FrameStream
from views.server.opened_traces import opened_traces
from views.server.sessions import session_registry

PATH = "api/frames"
POLL_SECONDS = 0.02
POLICY_VIOLATION, UNSUPPORTED_DATA = 1008, 1003
"""Close codes of RFC 6455."""


class FrameSource(Protocol):
    """An EngineSession or an OpenedTrace."""

    @property
    def frames(self) -> FrameStream:
        """The frames of this source, which may grow."""
        ...


def frames_path(source: FrameSource) -> str:
    """The path of this source's WebSocket, relative to the page."""
    return f"{PATH}/{source.frames.trace_id}"


async def frames_endpoint(socket: WebSocket) -> None:
    """Serve one map until it disconnects."""
    source = _find(socket.path_params["trace_id"])
    await socket.accept()
    if source is None or not is_same_origin(socket):
        await socket.close(POLICY_VIOLATION)
        return
    await stream_frames(socket, weakref.ref(source))


def fetched_frames(request: Request) -> Response:
    """GET: the frames that the map lacks. 204 where there are none, 404 when the run is gone."""
    source = _find(request.path_params["trace_id"])
    return Response(status_code=HTTP_404_NOT_FOUND) if source is None else frames_response(request, source)


def frames_response(request: Request, source: FrameSource | None) -> Response:
    """The answer to a plain request with the greeting's fields, `?trace_id=...&have=...`."""
    trace_id, have = request.query_params.get("trace_id"), request.query_params.get("have", "")
    if trace_id is None or not (have.isascii() and have.isdigit() and len(have) < 10):
        return Response(status_code=HTTP_400_BAD_REQUEST)
    delta = _delta(source, trace_id, int(have))
    headers = {"cache-control": "no-store"}
    if delta is None:
        return Response(status_code=HTTP_204_NO_CONTENT, headers=headers)
    return Response(delta.as_json(), media_type="application/json", headers=headers)


def _find(trace_id: str) -> FrameSource | None:
    return session_registry().find(trace_id) or opened_traces().find(trace_id)


async def stream_frames(socket: WebSocket, find: Callable[[], FrameSource | None]) -> None:
    """Send the frames that the map lacks of the source that `find` returns, whenever there are more.

    A source with another `trace_id` is another run and is sent from its start. Holds no reference to a source, so that
    a watched engine can be freed. The map's first message says what it has: `{"trace_id": ..., "have": ...}`.
    """
    try:
        greeting = await socket.receive_json()
        trace_id, have = str(greeting["trace_id"]), int(greeting["have"])
    except (ValueError, KeyError, TypeError, OverflowError):
        await socket.close(UNSUPPORTED_DATA)
    except WebSocketDisconnect:
        return
    else:
        await _send_new_frames(socket, find, trace_id, have)


async def _send_new_frames(socket: WebSocket, find: Callable[[], FrameSource | None], trace_id: str, have: int) -> None:
    disconnected = asyncio.create_task(_wait_for_disconnect(socket))
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it hung up while we were sending
        while not disconnected.done():
            if (delta := _delta(find(), trace_id, have)) is not None:
                await socket.send_text(delta.as_json())
                trace_id, have = delta.trace_id, delta.end
            await asyncio.wait({disconnected}, timeout=POLL_SECONDS)
    disconnected.cancel()


def _delta(source: FrameSource | None, trace_id: str, have: int) -> FrameDelta | None:
    if source is None or (trace_id, have) == (source.frames.trace_id, len(source.frames.texts)):
        return None
    return source.frames.delta_since(trace_id, have)


async def _wait_for_disconnect(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def is_same_origin(socket: WebSocket) -> bool:
    """Whether the Origin header is this server. Streamlit checks its own sockets only. Clients other than browsers send
    none."""
    origin = socket.headers.get("origin")
    return origin is None or urlparse(origin).netloc == socket.headers.get("host")


FRAMES_ROUTES = (
    WebSocketRoute(f"/{PATH}/{{trace_id}}", frames_endpoint),
    Route(f"/{PATH}/{{trace_id}}", fetched_frames),
)
