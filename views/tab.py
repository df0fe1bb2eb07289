"""What one browser tab owns: its engine, let go some time after the tab is closed.

Streamlit says that a tab is gone when its socket closes, and a reload or a short loss of the network closes it too. So
a tab that leaves is given a while to come back: the same one, or after a reload one that knows the engine's name.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from views import server
from views.engine_session import EngineSession

SECONDS_TO_COME_BACK = 60.0
SECONDS_TO_BE_MISSED = 1.5
"""How long after a reload the tab that was may still count as present."""
_KEY = "tab"


@dataclass(eq=False)
class Tab:
    session: EngineSession | None = None
    seconds_to_come_back: float = SECONDS_TO_COME_BACK
    _leaving: threading.Timer | None = field(default=None, repr=False)

    @property
    def open_session(self) -> EngineSession | None:
        """The engine, unless there is none yet or the tab stayed away too long."""
        return None if self.session is None or self.session.is_closed else self.session

    def replace(self, build: Callable[[], EngineSession]) -> EngineSession:
        """Close the engine there was, then open the one that `build` makes: two pools are never held at once."""
        self.close()
        self.session = build()
        server.open_sessions().add(self.session)
        return self.session

    def take_up(self, name: str) -> EngineSession | None:
        """The engine of this name, if the tab that had it has gone. One that is present keeps its own."""
        deadline = time.monotonic() + SECONDS_TO_BE_MISSED
        while server.open_sessions().has(name):
            if (session := server.left_sessions().take(name)) is not None:
                self.session = session
                return session
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        return None

    def arrived(self) -> None:
        """The tab is here. If another one has taken its engine up meanwhile, it has none any more."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
            if self.session is not None and server.left_sessions().take(self.session.name) is None:
                self.session = None

    def left(self) -> None:
        if (session := self.open_session) is not None:
            server.left_sessions().put(session)
        self._leaving = threading.Timer(self.seconds_to_come_back, self._give_up)
        self._leaving.daemon = True
        self._leaving.start()

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None

    def _give_up(self) -> None:
        """Close the engine, unless somebody has taken it up."""
        if self.session is not None and server.left_sessions().take(self.session.name) is not None:
            self.session.close()
        self.session = None


def this_tab() -> Tab:
    """The tab whose script is running, marked as present."""
    tab: Tab = st.session_state.setdefault(_KEY, Tab())
    _mark_present(tab)
    return tab


@st.cache_resource(scope="session", on_release=Tab.left, show_spinner=False)
def _mark_present(_tab: Tab) -> Tab:
    _tab.arrived()
    return _tab
