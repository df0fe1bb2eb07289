"""A server somebody pointed at: its stream, its metrics and its API, as one trace source.

    server = RemoteServer(ServerAddresses(events, replay, api))
    server.start()
    server.at(server.last_step), server.samples, server.status() ...
    server.stop()

Nothing here raises because a server is away: `status` says so, and the connection comes back by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from engine.event_base import Event, plural
from engine.remote.addresses import Address, is_listening
from engine.remote.flow import Second
from engine.remote.history import History
from engine.remote.metrics import OURS, MetricsSample, ServerKind
from engine.remote.scraper import Scraper
from engine.remote.subscriber import Subscriber
from engine.state import CacheState
from engine.trace import Trace
from engine.trace_source import SourceFacts, info_of

SECONDS_UNTIL_UNWATCHED = 120.0
SECONDS_BETWEEN_WATCHES = 5.0
_KEEP_THE_STAR = "Keep the *: with an address in its place the server connects out instead of listening."
VLLM_OPTION = (
    '--kv-events-config \'{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", '
    f'"replay_endpoint": "tcp://*:5558"}}\'. {_KEEP_THE_STAR}'
)
_HOW_TO_TURN_ON: dict[ServerKind | None, str] = {
    "SGLang": '--kv-events-config \'{"publisher": "zmq", "endpoint": "tcp://*:5557"}\'.',
    OURS: "--events tcp://127.0.0.1:5557, and without --no-events.",
}
"""For a server that answers but publishes nothing; vLLM's way for those not named."""


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """Any of `events` and `api` may be None, not both. `num_ranks`: data-parallel ranks, on ports one after another."""

    events: Address | None
    replay: Address | None = None
    api: Address | None = None
    num_ranks: int = 1

    def __str__(self) -> str:
        return str(self.events or self.api)


class RemoteServer:
    """Stops by itself when nobody has looked (`seen`) for `SECONDS_UNTIL_UNWATCHED` seconds."""

    def __init__(self, addresses: ServerAddresses) -> None:
        self.addresses = addresses
        self.history = History()
        self._subscriber: Subscriber | None = None
        if addresses.events is not None:
            self._subscriber = Subscriber(self.history, addresses.events, addresses.replay, addresses.num_ranks)
        self._scraper = None if addresses.api is None else Scraper(addresses.api)
        self._seen = time.monotonic()
        self._was_connected = False
        self._is_something_else = False
        self._stopped = threading.Event()
        self._watch = threading.Thread(target=self._stop_when_unwatched, name="remote-watch", daemon=True)

    def start(self) -> None:
        for part in (self._subscriber, self._scraper, self._watch):
            if part is not None:
                part.start()

    def stop(self) -> None:
        self._stopped.set()
        for part in (self._subscriber, self._scraper):
            if part is not None:
                part.stop()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def seen(self) -> None:
        """Somebody is looking."""
        self._seen = time.monotonic()

    @property
    def seconds_unseen(self) -> float:
        return time.monotonic() - self._seen

    # -- as a trace source --

    @property
    def facts(self) -> SourceFacts:
        newest = self.samples[-1] if self.samples else None
        kind = newest.server if newest is not None and newest.server else "A server"
        return SourceFacts(
            name=f"{kind} at {self.addresses}",
            is_live=True,
            model=None if self._scraper is None else self._scraper.model,
            num_blocks=None if newest is None else newest.num_blocks,
        )

    @property
    def first_step(self) -> int:
        return self.history.first_step

    @property
    def last_step(self) -> int:
        return self.history.last_step

    def at(self, step: int) -> CacheState:
        return self.history.at(step)

    def events_of(self, step: int) -> Sequence[Event]:
        return self.history.events_of(step)

    def flow(self) -> Sequence[Second]:
        return self.history.flow()

    @property
    def quiet_seconds(self) -> float:
        return self.history.quiet_seconds

    def trace(self) -> Trace:
        return self.history.trace(info_of(self.facts, "server"))

    # -- its HTTP side, and how it is --

    @property
    def samples(self) -> tuple[MetricsSample, ...]:
        """One a second, the newest last."""
        return () if self._scraper is None else self._scraper.samples

    @property
    def is_connected(self) -> bool:
        """Whether every endpoint of the stream has a server behind it, now."""
        connected = self._subscriber is not None and self._subscriber.num_connected == self.addresses.num_ranks
        self._was_connected |= connected
        return connected

    def problems(self) -> list[str]:
        """What is wrong, one plain sentence each."""
        said = [self._stream_problem()] if self._subscriber is not None and not self.is_connected else []
        if self._scraper is not None and self._scraper.problem:
            said.append(self._scraper.problem)
        if self.history.num_skipped:
            said.append(f"{plural(self.history.num_skipped, 'event')} could not be read and were left out.")
        return said

    def _stream_problem(self) -> str:
        where = self.addresses.events
        if self._is_something_else:
            return f"Something listens at {where}, but it publishes no KV events. Is it the right port?"
        if self._was_connected:
            return f"The connection to {where} is lost. It comes back by itself when the server does."
        if self._scraper is not None and self._scraper.samples:
            how = _HOW_TO_TURN_ON.get(self._scraper.samples[-1].server, VLLM_OPTION)
            return f"The server answers, but nothing listens at {where}: events are off. Start it with {how}"
        return f"Nothing listens at {where}. Start the server there, or correct the address; it connects by itself."

    def _stop_when_unwatched(self) -> None:
        """Now and then, also look whether the events address is taken by something of another kind."""
        events = self.addresses.events
        while not self._stopped.wait(SECONDS_BETWEEN_WATCHES):
            self._is_something_else = events is not None and not self.is_connected and is_listening(events)
            if self.seconds_unseen > SECONDS_UNTIL_UNWATCHED:
                self.stop()
