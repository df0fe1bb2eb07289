"""The source that one tab views: a server, a recording, or a trace file."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from engine.i18n import N_, _
from engine.remote.addresses import AddressError, events_address, http_address
from engine.remote.detokenizer import Detokenizer, State
from engine.remote.prompt import PromptResult
from engine.remote.recording import RecordingError, open_recording
from engine.remote.server import RemoteServer, ServerAddresses
from engine.trace.source import SourceFacts, TraceSource
from engine.trace.trace import TraceError
from views.remote.connections import TooManyServersError, is_presenter, refusal, remote_connections
from views.server.proxies import visitor_address

RECORDED = Path(__file__).resolve().parents[2] / "assets" / "traces" / "vllm-0.32-recorded.msgpack"
BRANCHES = RECORDED.with_name("vllm-0.32-branches-recorded.msgpack")
RECORDED_FACTS = SourceFacts(
    N_("Recorded from vLLM 0.32"), is_recorded=True, model="SmolLM2-135M-Instruct", num_blocks=24
)
MAX_FILE = 64 << 20
MAX_RANKS = 8
MOMENT = "remote_moment"
"""The slider's key."""
_KEY = "remote_shown"


@dataclass(frozen=True)
class SourceHead:
    """What the page shows above the picture. detokenizing: whether the server writes its tokens as text."""

    facts: SourceFacts
    detokenizing: State | None = None


@dataclass
class ViewedSource:
    """`source` None: nothing yet.

    problem: why the last action failed, in one sentence.
    head: what the source said about itself when the page was drawn last.
    asking, asked: a prompt that was sent to the server, and its answer.
    """

    source: TraceSource | None = None
    problem: str = ""
    head: SourceHead | None = None
    asked: PromptResult | None = None
    asking: Future[PromptResult] | None = None

    @property
    def server(self) -> RemoteServer | None:
        """The source, when it is a server."""
        return self.source if isinstance(self.source, RemoteServer) else None

    @property
    def detokenizer(self) -> Detokenizer | None:
        """Of the server, where it has answered."""
        detokenizer = None if self.server is None else self.server.detokenizer
        return detokenizer if detokenizer is not None and detokenizer.state == "answers" else None

    def read_head(self) -> SourceHead:
        """What the source says of itself now. There must be one."""
        assert self.source is not None
        detokenizer = None if self.server is None else self.server.detokenizer
        return SourceHead(self.source.facts, None if detokenizer is None else detokenizer.state)

    def show(self, source: TraceSource | None) -> None:
        """View a source at its newest moment, wherever the slider was for the one before."""
        st.session_state.pop(MOMENT, None)
        self.source, self.problem, self.asked, self.asking = source, "", None, None


def viewed_source() -> ViewedSource:
    """This tab's. A server that was stopped meanwhile is attached again."""
    viewed: ViewedSource = st.session_state.setdefault(_KEY, ViewedSource())
    server = viewed.server
    if server is not None:
        if server.is_stopped:
            attach(viewed, server.addresses)
        else:
            server.touch()
    return viewed


def attach(viewed: ViewedSource, addresses: ServerAddresses) -> None:
    """View a server; a refusal becomes `problem`."""
    visitor = visitor_address()
    connections = remote_connections()
    why_not = refusal(addresses, visitor, connections.attached_by_presenter)
    if why_not:
        viewed.problem = why_not
        return
    try:
        viewed.show(connections.attach(addresses, by_presenter=is_presenter(visitor)))
    except TooManyServersError as error:
        viewed.problem = str(error)


def attach_typed(viewed: ViewedSource, events: str, replay: str, api: str, num_ranks: int) -> None:
    """View the server at typed addresses; blank ones are left out."""
    try:
        addresses = ServerAddresses(
            events_address(events) if events.strip() else None,
            events_address(replay) if replay.strip() else None,
            http_address(api) if api.strip() else None,
            min(max(num_ranks, 1), MAX_RANKS),
        )
    except AddressError as error:
        viewed.problem = str(error)
        return
    if addresses.events is None and addresses.api is None:
        viewed.problem = _("Type an events address or an HTTP address.")
    else:
        attach(viewed, addresses)


def open_recorded(viewed: ViewedSource) -> None:
    """vLLM's stream, which comes with the app: 24 blocks of 32, prompts that evict each other."""
    viewed.show(open_recording(RECORDED.read_bytes(), RECORDED_FACTS))


def open_branches(viewed: ViewedSource) -> None:
    """Another stream of vLLM that comes with the app, with its metrics: 24 blocks of 32.

    Questions after two system prompts, six long stories at once that preempt each other, and the questions again.
    """
    viewed.show(open_recording(BRANCHES.read_bytes(), RECORDED_FACTS))


def open_file(viewed: ViewedSource, name: str, data: bytes) -> None:
    """View an uploaded recording or trace."""
    if len(data) > MAX_FILE:
        viewed.problem = _("The file has {num_data} MB; the limit is {max_file} MB.").format(
            num_data=len(data) >> 20, max_file=MAX_FILE >> 20
        )
        return
    try:
        viewed.show(open_recording(data, SourceFacts(_("The file {name}").format(name=name[:60]), is_recorded=True)))
    except (RecordingError, TraceError) as error:
        viewed.problem = str(error)
