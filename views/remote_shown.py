"""What one tab looks at: a server, a recording, or a trace file it opened."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from engine.remote.addresses import AddressError, events_address, http_address
from engine.remote.prompt import Asked
from engine.remote.recording import RecordingError, open_recording
from engine.remote.server import RemoteServer, ServerAddresses
from engine.trace import TraceError
from engine.trace_source import SourceFacts, TraceSource
from views.remote_access import is_presenter, refusal
from views.remote_connections import TooManyServersError, remote_connections

RECORDED = Path(__file__).resolve().parent.parent / "assets" / "traces" / "vllm-0.32-recorded.msgpack"
RECORDED_FACTS = SourceFacts(
    "Recorded from vLLM 0.32", is_recorded=True, model="SmolLM2-135M-Instruct", num_blocks=24
)
MAX_FILE = 64 << 20
MAX_RANKS = 8
_KEY = "remote_shown"


@dataclass
class Shown:
    """`source` None: nothing yet. `problem`: why the last wish could not be met. `asking`: a prompt under way.

    `facts`: what the source said of itself when the page was drawn last.
    """

    source: TraceSource | None = None
    problem: str = ""
    facts: SourceFacts | None = None
    asked: Asked | None = None
    asking: Future[Asked] | None = None

    @property
    def server(self) -> RemoteServer | None:
        """The source, when it is a server."""
        return self.source if isinstance(self.source, RemoteServer) else None

    def show(self, source: TraceSource | None) -> None:
        self.source, self.problem, self.asked, self.asking = source, "", None, None


def shown() -> Shown:
    """This tab's. A server that was let go meanwhile is attached again."""
    now: Shown = st.session_state.setdefault(_KEY, Shown())
    server = now.server
    if server is not None:
        if server.is_stopped:
            attach(now, server.addresses)
        else:
            server.seen()
    return now


def attach(now: Shown, addresses: ServerAddresses) -> None:
    """Look at a server; a refusal is kept in words."""
    visitor = st.context.ip_address
    connections = remote_connections()
    why_not = refusal(addresses, visitor, connections.attached_by_presenter)
    if why_not:
        now.problem = why_not
        return
    try:
        now.show(connections.attach(addresses, by_presenter=is_presenter(visitor)))
    except TooManyServersError as error:
        now.problem = str(error)


def attach_typed(now: Shown, events: str, replay: str, api: str, num_ranks: int) -> None:
    """Look at the server at typed addresses; blank ones are left out."""
    try:
        addresses = ServerAddresses(
            events_address(events) if events.strip() else None,
            events_address(replay) if replay.strip() else None,
            http_address(api) if api.strip() else None,
            min(max(num_ranks, 1), MAX_RANKS),
        )
    except AddressError as error:
        now.problem = str(error)
        return
    if addresses.events is None and addresses.api is None:
        now.problem = "Type an events address or an HTTP address."
    else:
        attach(now, addresses)


def open_recorded(now: Shown) -> None:
    """The recording that comes with the app."""
    now.show(open_recording(RECORDED.read_bytes(), RECORDED_FACTS))


def open_file(now: Shown, name: str, data: bytes) -> None:
    """A recording or a trace that somebody brought."""
    if len(data) > MAX_FILE:
        now.problem = f"The file has {len(data) >> 20} MB; {MAX_FILE >> 20} are read at most."
        return
    try:
        now.show(open_recording(data, SourceFacts(f"The file {name[:60]}", is_recorded=True)))
    except (RecordingError, TraceError) as error:
        now.problem = str(error)
