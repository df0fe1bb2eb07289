"""A map fed over a socket that is cut every two steps: the run goes on only because the map takes it up again."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import streamlit as st
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from course.scripted_engine import scripted_engine
from engine.config import EngineConfig
from engine.engine import Engine
from engine.sampling_params import SamplingParams
from views.memory_map.component import memory_map
from views.memory_map.frames import FrameStream

WORDS = ["crossed", "the", "quiet", "field", "and", "slept"]


def new_engine() -> Engine:
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=9, free_order=(6, 1, 8)), {"A": WORDS})
    engine.add_request("The red fox", SamplingParams(max_tokens=len(WORDS)))
    return engine


async def serve_frames(socket: WebSocket) -> None:
    """Two steps a connection. What the map already has is not sent again."""
    engine, stream = SHARED["engine"], SHARED["stream"]
    await socket.accept()
    hello = await socket.receive_json()
    await socket.send_text(stream.delta_since(hello["trace_id"], hello["have"]).as_json())
    SHARED["hellos"].append(hello["have"])
    for _ in range(2):
        sent = len(stream.texts)
        if engine.has_unfinished_requests():
            engine.step()
        stream.update()
        await socket.send_text(stream.delta_since(stream.trace_id, sent).as_json())
    await socket.close(1012)


SHARED: dict = {}


@contextlib.asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    engine = new_engine()
    stream = FrameStream(engine.trace, "live-run")
    stream.update()
    SHARED.update(engine=engine, stream=stream, hellos=[])
    yield


if st.runtime.exists():
    asked = st.query_params.get("position")
    opening = FrameStream(new_engine().trace, "live-run").initial_payload()
    shown = memory_map(opening, key="map", live="frames", position=None if asked is None else int(asked))
    st.text(f"position={shown.position} step={shown.step}")
else:
    app = st.App(__file__, lifespan=lifespan, routes=[WebSocketRoute("/frames", serve_frames)])
