"""The page that a browser loads first: Streamlit's own, and a script beside it that says when its WebSocket is missing.

Streamlit's page asks for a WebSocket and stays empty without one. A proxy that does not pass the upgrade on makes plain
requests of them; those are answered with 426 and a sentence, in the log too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache, partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.status import HTTP_426_UPGRADE_REQUIRED
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from views.browser.assets import read_assets, with_connection, with_texts
from views.server.streamlit_internals import index_html

SCRIPT_PATH, PROBE_PATH = "api/no_websocket.js", "api/connection"
NO_UPGRADE = (
    "This is the address of a WebSocket, and the request came without the upgrade. A proxy in front of this server "
    "must pass the headers Upgrade and Connection on: docs/deploying.md has the lines."
)
_HANDSHAKE = b"sec-websocket-key"


def page_routes(url_paths: Iterable[str]) -> list[Route | WebSocketRoute]:
    """Routes of the first page at each of these paths of pages ("" is the home page), of its script, and of the
    WebSocket that the script tries."""
    pages: list[Route | WebSocketRoute] = [Route(f"/{path}", _index) for path in url_paths]
    return [*pages, Route(f"/{SCRIPT_PATH}", _script), WebSocketRoute(f"/{PROBE_PATH}", _probe)]


def redirect_to(base_path: str) -> list[Route]:
    """`/kv` -> `/kv/`, relative: this server knows neither the scheme nor the host that a proxy is asked under."""
    return [Route(base_path, partial(_to_folder, base_path))] if base_path else []


def _to_folder(base_path: str, request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{base_path.rpartition('/')[2]}/{query}")


def _index(_request: Request) -> Response:
    return HTMLResponse(_index_text(), headers={"cache-control": "no-cache"})


@cache
def _index_text() -> str:
    script = f'<script type="module" src="./{SCRIPT_PATH}"></script>'
    return index_html().replace("</head>", f"{script}</head>", 1)


def _script(_request: Request) -> Response:
    return Response(_script_text(), media_type="text/javascript", headers={"cache-control": "no-cache"})


@cache
def _script_text() -> str:
    return with_texts(with_connection(read_assets("no_websocket.js")))


async def _probe(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


class UpgradeRequiredMiddleware:
    """Answers a WebSocket's handshake that arrives as a plain request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.has_warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or all(name != _HANDSHAKE for name, _value in scope["headers"]):
            await self.app(scope, receive, send)
            return
        if not self.has_warned:
            self.has_warned = True
            logging.getLogger(__name__).warning("%s Path: %s", NO_UPGRADE, scope["path"][:200])
        answer = PlainTextResponse(NO_UPGRADE + "\n", HTTP_426_UPGRADE_REQUIRED, headers={"upgrade": "websocket"})
        await answer(scope, receive, send)
