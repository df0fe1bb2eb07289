"""Who is let in and what a page may do: the host check and the content security policy, for every request.

Streamlit checks hosts and origins on its own sockets only, and sends no policy. This stands before all of it, our own
routes included. What it defends against, and what not: SECURITY.md.
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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from views.streamlit_private import inline_script_hashes

HOSTS_VARIABLE = "PAGED_KV_HOSTS"
METRICS_VARIABLE = "PAGED_KV_METRICS"
METRICS_PATHS = ("/metrics", "/_stcore/metrics")
POLICY_VIOLATION = 1008
STRANGE_HOST = (
    "This server answers to its address (127.0.0.1, localhost, its machine's name or IP number). "
    f"To let it answer to another name, put that name into {HOSTS_VARIABLE} before the start."
)


def content_security_policy(host: str, inline_scripts: Iterable[str] = ()) -> str:
    """Everything from this server and nothing from elsewhere. `inline_scripts`: hashes of Streamlit's own.

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
            "frame-ancestors 'self'",
        )
    )


def is_known_host(host: str, own_names: Iterable[str]) -> bool:
    """Whether a Host header names this machine. A page of another site that has its name point here says that name
    (DNS rebinding); an IP number can't be forged that way."""
    name = _name_of(host)
    if name is None:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name in own_names
    return True


def own_names() -> frozenset[str]:
    """This machine's names, and those that whoever started the server added. Nobody is asked: a name server that does
    not answer must not hold up the start."""
    machine = socket.gethostname().lower()
    added = re.split(r"[,\s]+", os.environ.get(HOSTS_VARIABLE, "").lower())
    return frozenset(name for name in (machine, f"{machine}.local", *added) if name)


class Door:
    """ASGI middleware. Refuses strange hosts, closes the metrics unless asked for, adds the policy to answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.names = own_names()
        self.inline_scripts = inline_script_hashes()
        self.shows_metrics = os.environ.get(METRICS_VARIABLE) == "1"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")
        if not is_known_host(host, self.names):
            await _turn_away(scope, receive, send, STRANGE_HOST, 400)
        elif scope["path"] in METRICS_PATHS and not self.shows_metrics:
            await _turn_away(scope, receive, send, f"Metrics are off. Start the server with {METRICS_VARIABLE}=1.", 404)
        else:
            policy = content_security_policy(host, self.inline_scripts)
            await self.app(scope, receive, _with_policy(send, policy))


async def _turn_away(scope: Scope, receive: Receive, send: Send, sentence: str, status: int) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
    else:
        await PlainTextResponse(sentence + "\n", status)(scope, receive, send)


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
    """The name in `name:port` or `[::1]:port`, None for what is no host at all."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and not parts.username else None
