"""What a reverse proxy says about visitors. None is believed until PAGED_KV_TRUSTED_PROXIES names its address.

A trusted proxy may say one thing: X-Forwarded-Host, the host in the visitor's address bar, for proxies that send
another Host header. It takes the place of Host, so it must be one that is answered (PAGED_KV_HOSTS). Scheme and path
come from the visitor's own browser; nothing here needs X-Forwarded-For or X-Forwarded-Proto, and uvicorn, which takes
both from 127.0.0.1 by default, is told not to.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

PROXIES_VARIABLE = "PAGED_KV_TRUSTED_PROXIES"
BEHIND_A_PROXY = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers that only a proxy adds, or somebody who wants to look like one."""
UNKNOWN_VISITOR = "behind a proxy"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def names_in(variable: str) -> list[str]:
    """What an environment variable lists, separated by commas or white space, in lower case."""
    return [name for name in re.split(r"[,\s]+", os.environ.get(variable, "").lower()) if name]


def trusted_proxies() -> tuple[Network, ...]:
    """The addresses and networks in PAGED_KV_TRUSTED_PROXIES. Raises ValueError for one that is neither."""
    try:
        return tuple(ipaddress.ip_network(name) for name in names_in(PROXIES_VARIABLE))
    except ValueError as error:
        raise ValueError(
            f"{PROXIES_VARIABLE} takes IP addresses or networks, separated by commas, such as 127.0.0.1: {error}"
        ) from None


def keep_uvicorn_from_reading_forwarded_headers() -> None:
    """Undo uvicorn's default, by which whoever connects from 127.0.0.1 may name any client address and scheme."""
    ProxyHeadersMiddleware.__call__ = _pass_on  # type: ignore[assignment, method-assign]


async def _pass_on(middleware: ProxyHeadersMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
    await middleware.app(scope, receive, send)  # type: ignore[arg-type]


class ForwardedHostMiddleware:
    """Puts a trusted proxy's X-Forwarded-Host in the place of Host. Everybody else's is left alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.proxies = trusted_proxies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.proxies and scope["type"] in ("http", "websocket") and _is_in(scope.get("client"), self.proxies):
            forwarded = Headers(scope=scope).getlist("x-forwarded-host")
            if forwarded:  # of several, the last is what the proxy that we know has added
                host = forwarded[-1].rpartition(",")[2].strip()
                others = [(name, value) for name, value in scope["headers"] if name != b"host"]
                scope = {**scope, "headers": [(b"host", host.encode("latin-1")), *others]}
        await self.app(scope, receive, send)


def _is_in(client: tuple[str, int] | None, networks: Iterable[Network]) -> bool:
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return False
    return any(address in network for network in networks)


def visitor_address() -> str | None:
    """The IP address of this tab's visitor as Streamlit tells it, None for this machine's own.

    Behind a proxy it is UNKNOWN_VISITOR: the address would be the proxy's, which may be this machine.
    """
    return UNKNOWN_VISITOR if comes_through_a_proxy(st.context.headers) else st.context.ip_address


def comes_through_a_proxy(headers: Mapping[str, str]) -> bool:
    """Whether a connection's headers, by lower-case name, are not those of a browser that came to this machine by its
    IP number or as `localhost`."""
    sent = {name.lower(): value for name, value in headers.items()}
    hosts = [sent.get("host", "localhost"), urlsplit(sent.get("origin", "http://localhost")).netloc]
    return any(name in sent for name in BEHIND_A_PROXY) or not all(map(_is_plain, hosts))


def _is_plain(host: str) -> bool:
    """Whether a host is `localhost` or an IP number, with or without a port."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ipaddress.ip_address(name))
    except ValueError:
        return False
