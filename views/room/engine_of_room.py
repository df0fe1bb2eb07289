"""The room's engine, made of the weights that every tab shares."""

from __future__ import annotations

from functools import partial

from views import server
from views.engine_session import EngineSession
from views.room.room import Room
from views.server import ReadyModel

TITLE = "Memory of the room's engine"


def open_engine(room: Room, model: ReadyModel) -> EngineSession:
    """The session all share; the first to come makes it. Raises ValueError or MemoryError with a sentence."""
    return room.engine.open(partial(_build, room, model))


def _build(room: Room, model: ReadyModel) -> EngineSession:
    # Imported here so that the page's frame is drawn before torch is loaded.
    from engine import Engine
    from engine.loading import load_parts

    config = room.settings.config(model.weights.name)
    session = EngineSession(Engine(config, load_parts(config, model.weights)))
    session.frames.title = TITLE
    server.open_sessions().add(session)
    return session
