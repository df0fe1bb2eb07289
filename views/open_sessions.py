"""The engines that are open now, held weakly: counting them keeps none of them alive."""

from __future__ import annotations

import logging
import threading
import weakref

from views.engine_session import EngineSession


class OpenSessions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[EngineSession] = weakref.WeakSet()

    def __len__(self) -> int:
        with self._lock:
            return sum(not session.is_closed for session in self._sessions)

    def add(self, session: EngineSession) -> None:
        with self._lock:
            self._sessions.add(session)
        config = session.engine.config
        logging.getLogger(__name__).info(
            "an engine opens: %d blocks of %d, model %s; open now: %d", config.num_blocks, config.block_size,
            config.model, len(self),
        )  # fmt: skip

    def find(self, trace_id: str) -> EngineSession | None:
        """The open session whose frames carry this name."""
        return next((session for session in self.open_ones() if session.frames.trace_id == trace_id), None)

    def has(self, name: str) -> bool:
        """Whether a session of this name is open."""
        return any(session.name == name for session in self.open_ones())

    def open_ones(self) -> list[EngineSession]:
        with self._lock:
            return [session for session in self._sessions if not session.is_closed]

    def close_all(self) -> None:
        """Tell all to stop first, then wait for each: the waits overlap."""
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.stop()
        for session in sessions:
            session.close()
