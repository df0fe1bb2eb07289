"""Servers that this app is attached to, one connection each, and who may attach it to which server.

The app must not become a way into a network for everybody in a room:

- Only `tcp://`, `http://` and `https://` addresses of servers, never link-local ones (`engine/remote/addresses.py`).
  Only fixed paths are requested, redirects are not followed, and responses are shown as figures and text.
- Whoever sits at the machine that runs the app (the presenter) may type any of them.
- Everybody else may use servers on that machine, and those that the presenter has attached to.
- With the environment variable PAGED_KV_SERVERS, a comma-separated list of addresses, nobody may use any other server
  than these and this machine's own.
- Whoever comes through a proxy is nobody at this machine, wherever the proxy is (`views/server/proxies.py`).
"""

from __future__ import annotations

import ipaddress
import os
import threading

import streamlit as st

from engine.i18n import _
from engine.remote.addresses import Address
from engine.remote.server import RemoteServer, ServerAddresses

SERVERS_VARIABLE = "PAGED_KV_SERVERS"
MAX_CONNECTIONS = 4
IDLE_SECONDS = 20.0
"""A server that nobody has viewed for so long makes room for another one when there are too many."""


def is_presenter(visitor: str | None) -> bool:
    """Whether a visitor with this IP address (`visitor_address`) uses the app's own machine, for which it is None."""
    if visitor is None:
        return True
    try:
        return ipaddress.ip_address(visitor).is_loopback
    except ValueError:
        return False


def refusal(addresses: ServerAddresses, visitor: str | None, attached: set[Address]) -> str:
    """Why this visitor may not use these addresses, in one sentence; nothing when they may.

    `attached`: what the presenter has attached to.
    """
    foreign = [part for part in asked_addresses(addresses) if not part.is_this_machine]
    named = os.environ.get(SERVERS_VARIABLE)
    if named is not None:
        listed = {text.strip().rstrip("/") for text in named.split(",")}
        foreign = [part for part in foreign if str(part) not in listed]
        return (
            _("{foreign} is not on the list of servers that this app may use.").format(foreign=foreign[0])
            if foreign
            else ""
        )
    if is_presenter(visitor):
        return ""
    foreign = [part for part in foreign if part not in attached]
    return (
        _("Only the presenter can attach to {foreign}: ask them to do it first.").format(foreign=foreign[0])
        if foreign
        else ""
    )


def asked_addresses(addresses: ServerAddresses) -> list[Address]:
    """Every address that the app would connect to."""
    parts = [addresses.events, addresses.replay, addresses.api]
    ranks = range(addresses.num_ranks)
    return [part.of_rank(rank) for part in parts[:2] if part is not None for rank in ranks] + [
        part for part in parts[2:] if part is not None
    ]


class TooManyServersError(ValueError):
    """No room for another connection. One plain sentence."""


class RemoteConnections:
    """A server that nobody views stops by itself (`RemoteServer`) and is then dropped here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[ServerAddresses, RemoteServer] = {}
        self._by_presenter: set[Address] = set()

    @property
    def attached_by_presenter(self) -> set[Address]:
        """Addresses that a visitor on the app's own machine attached."""
        return set(self._by_presenter)

    def attach(self, addresses: ServerAddresses, *, by_presenter: bool) -> RemoteServer:
        """The connection to these addresses, new when there is none. Raises TooManyServersError."""
        with self._lock:
            self._servers = {key: server for key, server in self._servers.items() if not server.is_stopped}
            server = self._servers.get(addresses)
            if server is None:
                self._make_room()
                server = self._servers[addresses] = RemoteServer(addresses)
                server.start()
            if by_presenter:
                self._by_presenter |= set(asked_addresses(addresses))
            server.touch()
            return server

    def _make_room(self) -> None:
        if len(self._servers) < MAX_CONNECTIONS:
            return
        longest = max(self._servers.values(), key=lambda server: server.seconds_idle)
        if longest.seconds_idle < IDLE_SECONDS:
            raise TooManyServersError(
                _(
                    "This app is attached to {max_connections} servers, the most it allows. One that nobody "
                    "views is closed after {idle_seconds:g} seconds."
                ).format(max_connections=MAX_CONNECTIONS, idle_seconds=IDLE_SECONDS)
            )
        del self._servers[longest.addresses]
        threading.Thread(target=longest.stop, daemon=True).start()

    def close_all(self) -> None:
        """Stop every connection."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.stop()


def _close_all(connections: RemoteConnections) -> None:
    connections.close_all()


@st.cache_resource(show_spinner=False, on_release=_close_all)
def remote_connections() -> RemoteConnections:
    """One for all tabs of this server."""
    return RemoteConnections()
