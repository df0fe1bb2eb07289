"""Engines whose tab has gone and may come back. Each can be taken once, by whoever knows its name."""

from __future__ import annotations

import threading

from views.engine_session import EngineSession


class LeftSessions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, EngineSession] = {}

    def put(self, session: EngineSession) -> None:
        with self._lock:
            self._sessions[session.name] = session

    def take(self, name: str) -> EngineSession | None:
        """The open engine of this name, which is then no longer here."""
        with self._lock:
            session = self._sessions.pop(name, None)
        return None if session is None or session.is_closed else session
