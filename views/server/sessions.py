"""Engine sessions by the browser tab that owns them: which are open, and which wait for their tab to reconnect.

Streamlit reports a tab as gone when its WebSocket closes, and a reload or a short loss of the network closes it too. So
the session of a tab that disconnects is kept for a while: for the same tab, or after a reload for one that knows its
name.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from views.server.engine_session import EngineSession

REATTACH_SECONDS = 60.0
"""How long a session waits for its tab before it is closed."""
DISCONNECT_GRACE_SECONDS = 1.5
"""How long after a reload the tab before it may still count as connected."""
_KEY = "tab"


class SessionRegistry:
    """The open sessions of all tabs, held weakly, and the detached ones, held until somebody claims them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[EngineSession] = weakref.WeakSet()
        self._detached: dict[str, EngineSession] = {}

    def __len__(self) -> int:
        """How many sessions are open."""
        return len(self.open_sessions())

    def add(self, session: EngineSession) -> None:
        """Count a new session as open. The registry does not keep it alive."""
        with self._lock:
            self._sessions.add(session)
        config = session.engine.config
        logging.getLogger(__name__).info(
            "engine session opened: %d blocks of %d, model %s; open sessions: %d", config.num_blocks,
            config.block_size, config.model, len(self),
        )  # fmt: skip

    def open_sessions(self) -> list[EngineSession]:
        """The sessions that are not closed."""
        with self._lock:
            return [session for session in self._sessions if not session.is_closed]

    def find(self, trace_id: str) -> EngineSession | None:
        """The open session whose frames have this `trace_id`."""
        return next((session for session in self.open_sessions() if session.frames.trace_id == trace_id), None)

    def has(self, name: str) -> bool:
        """Whether a session of this name is open."""
        return any(session.name == name for session in self.open_sessions())

    def detach(self, session: EngineSession) -> None:
        """Keep a session whose tab has disconnected, until `claim`."""
        with self._lock:
            self._detached[session.name] = session

    def claim(self, name: str) -> EngineSession | None:
        """Take the detached session of this name; only the first caller gets it. None when it is gone or closed."""
        with self._lock:
            session = self._detached.pop(name, None)
        return None if session is None or session.is_closed else session

    def close_all(self) -> None:
        """Stop every session first, then wait for each: the waits overlap."""
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.stop()
        for session in sessions:
            session.close()


@st.cache_resource(show_spinner=False)
def session_registry() -> SessionRegistry:
    """One for the whole server."""
    return SessionRegistry()


@dataclass(eq=False)
class Tab:
    """One browser tab and the session that it owns."""

    session: EngineSession | None = None
    reattach_seconds: float = REATTACH_SECONDS
    _expiry: threading.Timer | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held while the tab disconnects, reconnects or expires."""

    @property
    def open_session(self) -> EngineSession | None:
        """The session, unless there is none yet or it has expired."""
        return None if self.session is None or self.session.is_closed else self.session

    def replace(self, build: Callable[[], EngineSession]) -> EngineSession:
        """Close the session and open the one that `build` makes: two block pools are never held at once."""
        self.close()
        self.session = build()
        session_registry().add(self.session)
        return self.session

    def reattach(self, name: str) -> EngineSession | None:
        """Own the session of this name if its tab has disconnected; None while that tab is connected."""
        deadline = time.monotonic() + DISCONNECT_GRACE_SECONDS
        while session_registry().has(name):
            if (session := session_registry().claim(name)) is not None:
                self.session = session
                return session
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        return None

    def on_connect(self) -> None:
        """Keep the session from expiring. The tab has none any more if another one has claimed it meanwhile."""
        with self._lock:
            if self._expiry is not None:
                self._expiry.cancel()
                self._expiry = None
                if self.session is not None and session_registry().claim(self.session.name) is None:
                    self.session = None

    def on_disconnect(self) -> None:
        """Detach the session, and close it after `reattach_seconds` unless it was claimed."""
        with self._lock:
            if (session := self.open_session) is not None:
                session_registry().detach(session)
            self._expiry = threading.Timer(self.reattach_seconds, self._expire)
            self._expiry.daemon = True
            self._expiry.start()

    def close(self) -> None:
        """Close the tab's engine, if it has one."""
        if self.session is not None:
            self.session.close()
            self.session = None

    def _expire(self) -> None:
        """Close the session unless it was claimed. Called by the timer alone.

        A timer that is cancelled while it starts runs all the same: then the tab that reconnected keeps its session.
        """
        with self._lock:
            if self._expiry is not threading.current_thread():
                return
            session, self.session = self.session, None
        if session is not None and session_registry().claim(session.name) is not None:
            session.close()


def this_tab() -> Tab:
    """The tab whose script is running, marked as connected."""
    tab: Tab = st.session_state.setdefault(_KEY, Tab())
    _mark_connected(tab)
    return tab


@st.cache_resource(scope="session", on_release=Tab.on_disconnect, show_spinner=False)
def _mark_connected(_tab: Tab) -> Tab:
    """Streamlit releases it when the tab's WebSocket closes."""
    _tab.on_connect()
    return _tab
