"""ASGI middleware for every request: the check of the Host header and the content security policy.

Streamlit checks hosts and origins on its own sockets only, and sends no policy. This covers Streamlit's routes and this
app's. What it defends against, and what not: SECURITY.md.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.status import HTTP_300_MULTIPLE_CHOICES, HTTP_404_NOT_FOUND
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from views.server.base_path import base_path
from views.server.proxies import names_in
from views.server.streamlit_internals import inline_script_hashes

HOSTS_VARIABLE = "PAGED_KV_HOSTS"
FRAMES_VARIABLE = "PAGED_KV_FRAME_ANCESTORS"
METRICS_VARIABLE = "PAGED_KV_METRICS"
METRICS_PATHS = ("/metrics", "/_stcore/metrics")
"""Below the base path."""
PROBES = ("/_stcore/health", "/_stcore/host-config")
"""Streamlit's client requests these first, below the path of the page it was opened at: the app may be served there."""
POLICY_VIOLATION = 1008
_ORIGIN = re.compile(r"https?://[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?")
UNKNOWN_HOST = (
    "This server answers to its address (127.0.0.1, localhost, its machine's name or IP number). "
    f"To let it answer to another name, put that name into {HOSTS_VARIABLE} before the start."
)


def frame_ancestors() -> tuple[str, ...]:
    """The origins in PAGED_KV_FRAME_ANCESTORS, whose pages may show this app's in a frame. Raises ValueError for what
    is no origin, so that a typing error does not open more than was meant."""
    origins = tuple(names_in(FRAMES_VARIABLE))
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{FRAMES_VARIABLE} takes origins such as https://blog.example, separated by commas: {origin}"
            )
    return origins


def content_security_policy(host: str, inline_scripts: Iterable[str] = (), framed_by: Iterable[str] = ()) -> str:
    """Everything from this server and nothing from elsewhere. `inline_scripts`: hashes of Streamlit's inline scripts.
    `framed_by`: origins besides this one that may put a page into a frame.

    blob: scripts are Streamlit's way of loading a component; inline styles are its way of theming. Plotly compiles
    nothing at run time in the charts used here, so `unsafe-eval` is not needed.
    """
    hashes = "".join(f" '{digest}'" for digest in inline_scripts)
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' blob:{hashes}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host} data: blob:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            " ".join(("frame-ancestors 'self'", *framed_by)),
        )
    )


def is_known_host(host: str, own_names: Iterable[str]) -> bool:
    """Whether a Host header names this machine: by one of its names, `localhost`, or any IP number.

    Against DNS rebinding: the page of another site whose name points here sends that name, never an IP number."""
    name = _name_of(host)
    if name is None:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name in own_names
    return True


def own_names() -> frozenset[str]:
    """This machine's names, and those in the environment variable PAGED_KV_HOSTS. No name server is asked: one that
    does not answer must not delay the start."""
    machine = socket.gethostname().lower()
    added = names_in(HOSTS_VARIABLE)
    return frozenset(name for name in (machine, f"{machine}.local", *added) if name)


class SecurityMiddleware:
    """Refuses unknown hosts, and the metrics unless they were turned on; adds the policy headers to responses."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.names = own_names()
        self.inline_scripts = inline_script_hashes()
        self.framed_by = frame_ancestors()
        self.metrics_paths = {base_path() + path for path in METRICS_PATHS}
        self.shows_metrics = os.environ.get(METRICS_VARIABLE) == "1"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")
        if not is_known_host(host, self.names):
            await _refuse(scope, receive, send, UNKNOWN_HOST, 400)
        elif scope["path"] in self.metrics_paths and not self.shows_metrics:
            await _refuse(scope, receive, send, f"Metrics are off. Start the server with {METRICS_VARIABLE}=1.", 404)
        else:
            policy = content_security_policy(host, self.inline_scripts, self.framed_by)
            if scope["path"].endswith(PROBES):
                send = _without_404(send)
            await self.app(scope, receive, _with_policy(send, policy))


async def _refuse(scope: Scope, receive: Receive, send: Send, sentence: str, status: int) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
    else:
        await PlainTextResponse(sentence + "\n", status)(scope, receive, send)


def _without_404(send: Send) -> Send:
    """Send 300 in place of 404. Streamlit's client tries its next path either way, but 300 is no error in the browser's
    console; 200 would make the client take the page's path for the app's base path."""

    async def send_choices(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTP_404_NOT_FOUND:
            message["status"] = HTTP_300_MULTIPLE_CHOICES
        await send(message)

    return send_choices


def _with_policy(send: Send, policy: str) -> Send:
    async def send_with_policy(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["content-security-policy"] = policy
            headers["x-content-type-options"] = "nosniff"
            headers["referrer-policy"] = "no-referrer"
        await send(message)

    return send_with_policy


def _name_of(host: str) -> str | None:
    """The name in `name:port` or `[::1]:port`; None when it is not a valid host."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and not parts.username else None
