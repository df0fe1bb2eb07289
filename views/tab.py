"""What one browser tab owns: its engine, let go some time after the tab is closed.

Streamlit says that a tab is gone when its socket closes, and a short loss of the network closes it too. So a tab that
leaves is given a while to come back before its engine is closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from views import server
from views.engine_session import EngineSession

SECONDS_TO_COME_BACK = 60.0
_KEY = "tab"


@dataclass
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

    def arrived(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def left(self) -> None:
        self._leaving = threading.Timer(self.seconds_to_come_back, self.close)
        self._leaving.daemon = True
        self._leaving.start()

    def close(self) -> None:
        if self.session is not None:
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
