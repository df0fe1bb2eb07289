"""`GET /metrics`: Prometheus text about all engine sessions together, under the names that vLLM uses.

Gauges are sums over the open sessions; counters keep what closed sessions have counted, so they never fall.
SecurityMiddleware refuses the path unless the server was started with metrics on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from engine.serve.metrics import ServerCounts, StatLogger, counts_text
from views.server.engine_session import EngineSession
from views.server.model_registry import default_model
from views.server.sessions import session_registry

GAUGES = ("num_running", "num_waiting", "num_used_blocks")


@dataclass
class _SessionCounts:
    """How far one session's trace has been counted."""

    statistics: StatLogger = field(default_factory=StatLogger)
    num_events: int = 0

    def update(self, session: EngineSession) -> ServerCounts:
        events = session.engine.trace.events[self.num_events :]
        self.num_events += len(events)
        self.statistics(session.engine, events)
        return self.statistics.counts


class AppMetrics:
    """Counts what the engine sessions of this server did, closed ones included."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_session: dict[str, _SessionCounts] = {}
        self._closed = ServerCounts()

    def text(self, sessions: Iterable[EngineSession], model: str) -> str:
        """What has been counted until now, in Prometheus' text format. Safe to call from several threads."""
        with self._lock:
            open_ones = {session.name: session for session in sessions}
            for name in self._by_session.keys() - open_ones.keys():
                last = self._by_session.pop(name).statistics.counts
                self._closed = total((self._closed, replace(last, **dict.fromkeys(GAUGES, 0))))
            counts = [self._by_session.setdefault(name, _SessionCounts()).update(s) for name, s in open_ones.items()]
            num_blocks = sum(session.engine.config.num_blocks for session in open_ones.values())
            return counts_text(total((self._closed, *counts)), model, num_blocks)


def total(counts: Iterable[ServerCounts]) -> ServerCounts:
    """The sum, field by field."""
    rows = list(counts)
    return ServerCounts(**{field.name: sum(getattr(row, field.name) for row in rows) for field in fields(ServerCounts)})


@st.cache_resource(show_spinner=False)
def app_metrics() -> AppMetrics:
    """One for the whole server."""
    return AppMetrics()


def metrics_endpoint(_request: Request) -> Response:
    """GET /metrics."""
    return PlainTextResponse(app_metrics().text(session_registry().open_sessions(), default_model()))


METRICS_ROUTE = Route("/metrics", metrics_endpoint)
