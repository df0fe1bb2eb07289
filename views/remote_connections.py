"""The servers this app is attached to: one connection each, however many tabs look at it."""

from __future__ import annotations

import threading

import streamlit as st

from engine.remote.addresses import Address
from engine.remote.server import RemoteServer, ServerAddresses
from views.remote_access import asked_addresses

MOST_AT_ONCE = 4
SECONDS_UNTIL_REPLACED = 20.0
"""A server that nobody has looked at for so long makes room for another when there are too many."""


class TooManyServersError(ValueError):
    """No room for another connection. One plain sentence."""


class RemoteConnections:
    """A server that nobody looks at stops by itself (`RemoteServer`), and is then no longer in the list."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[ServerAddresses, RemoteServer] = {}
        self._by_presenter: set[Address] = set()

    @property
    def attached_by_presenter(self) -> set[Address]:
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
            server.seen()
            return server

    def _make_room(self) -> None:
        if len(self._servers) < MOST_AT_ONCE:
            return
        longest = max(self._servers.values(), key=lambda server: server.seconds_unseen)
        if longest.seconds_unseen < SECONDS_UNTIL_REPLACED:
            raise TooManyServersError(
                f"This app is attached to {MOST_AT_ONCE} servers, which is the most. "
                f"One that nobody looks at makes room after {SECONDS_UNTIL_REPLACED:g} seconds."
            )
        del self._servers[longest.addresses]
        threading.Thread(target=longest.stop, daemon=True).start()

    def close_all(self) -> None:
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.stop()


def _let_go(connections: RemoteConnections) -> None:
    connections.close_all()


@st.cache_resource(show_spinner=False, on_release=_let_go)
def remote_connections() -> RemoteConnections:
    """One for all tabs of this server."""
    return RemoteConnections()
