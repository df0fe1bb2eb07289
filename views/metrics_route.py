"""`GET /metrics`: Prometheus text for whoever watches the server. The door keeps it closed unless asked for."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from views import server


def answer(_request: Request) -> Response:
    sessions = server.open_sessions().open_ones()
    return PlainTextResponse(server.app_metrics().text(sessions, server.default_model()))


METRICS_ROUTE = Route("/metrics", answer)
