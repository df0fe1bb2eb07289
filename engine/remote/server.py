"""A remote server: its KV events, its metrics and its API, as one trace source.

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

from engine.i18n import _, counted
from engine.remote.addresses import Address, is_listening
from engine.remote.detokenizer import Detokenizer
from engine.remote.history import History
from engine.remote.metrics import OURS, MetricsSample, ServerKind
from engine.remote.scraper import Scraper
from engine.remote.subscriber import Endpoint, Subscriber
from engine.remote.timeline import TimelineSecond, timeline_of
from engine.trace.event_base import Event
from engine.trace.per_second import SecondStats
from engine.trace.source import SourceFacts, info_of
from engine.trace.state import CacheState
from engine.trace.trace import Trace

SECONDS_UNTIL_IDLE = 120.0
SECONDS_BETWEEN_CHECKS = 5.0
MOST_LISTED = 3
"""Addresses in one sentence, and asked for in one watch."""
_KEEP_THE_WILDCARD = "Keep the *: with an address in its place the server connects out instead of listening."
VLLM_OPTION = (
    '--kv-events-config \'{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", '
    f'"replay_endpoint": "tcp://*:5558"}}\'. {_KEEP_THE_WILDCARD}'
)
_HOW_TO_ENABLE: dict[ServerKind | None, str] = {
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
    """Stops by itself when nobody has looked (`touch`) for `SECONDS_UNTIL_IDLE` seconds."""

    def __init__(self, addresses: ServerAddresses) -> None:
        self.addresses = addresses
        self.history = History()
        self._subscriber: Subscriber | None = None
        if addresses.events is not None:
            self._subscriber = Subscriber(self.history, addresses.events, addresses.replay, addresses.num_ranks)
        self._scraper = None if addresses.api is None else Scraper(addresses.api)
        self.detokenizer = None if addresses.api is None else Detokenizer(addresses.api)
        """None without an HTTP address."""
        self._seen = time.monotonic()
        self._taken: frozenset[Address] = frozenset()
        self._stopped = threading.Event()
        self._watch = threading.Thread(target=self._stop_when_idle, name="remote-watch", daemon=True)

    def start(self) -> None:
        """Start the threads that listen, scrape, get texts and watch for idleness."""
        for part in (self._subscriber, self._scraper, self.detokenizer, self._watch):
            if part is not None:
                part.start()

    def stop(self) -> None:
        """Stop all threads. What was seen can still be shown."""
        self._stopped.set()
        for part in (self._subscriber, self._scraper, self.detokenizer):
            if part is not None:
                part.stop()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called, by a caller or after SECONDS_UNTIL_IDLE."""
        return self._stopped.is_set()

    def touch(self) -> None:
        """Somebody is looking."""
        self._seen = time.monotonic()

    @property
    def seconds_idle(self) -> float:
        """Seconds since the last `touch`."""
        return time.monotonic() - self._seen

    # -- as a trace source --

    @property
    def facts(self) -> SourceFacts:
        """See TraceSource."""
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
        """See TraceSource."""
        return self.history.first_step

    @property
    def last_step(self) -> int:
        """See TraceSource."""
        return self.history.last_step

    def at(self, step: int) -> CacheState:
        """See TraceSource."""
        return self.history.at(step)

    def events_of(self, step: int) -> Sequence[Event]:
        """See TraceSource."""
        return self.history.events_of(step)

    def per_second(self) -> Sequence[SecondStats]:
        """See TraceSource."""
        return self.history.per_second()

    @property
    def quiet_seconds(self) -> float:
        """See TraceSource."""
        return self.history.quiet_seconds

    def trace(self) -> Trace:
        """See TraceSource."""
        return self.history.trace(info_of(self.facts, "server"))

    def timeline(self) -> list[TimelineSecond]:
        """Stream and metrics on one axis, by the server's clock."""
        return timeline_of(self.per_second(), self.samples, self.history.clock.from_ours)

    # -- its HTTP side, and how it is --

    @property
    def samples(self) -> tuple[MetricsSample, ...]:
        """One a second, the newest last."""
        return () if self._scraper is None else self._scraper.samples

    @property
    def is_connected(self) -> bool:
        """Whether every endpoint of the stream has a server behind it, now."""
        return self._subscriber is not None and not self._absent()

    def problems(self) -> list[str]:
        """What is wrong, one plain sentence each."""
        problems = self._stream_problems()
        if self._scraper is not None and self._scraper.problem:
            problems.append(self._scraper.problem)
        if self._subscriber is not None and self._subscriber.num_unknown:
            problems.append(messages_left_out(self._subscriber.num_unknown))
        if self.history.num_skipped:
            problems.append(events_left_out(self.history.num_skipped))
        return problems

    def _absent(self) -> list[Endpoint]:
        return [] if self._subscriber is None else [end for end in self._subscriber.endpoints if not end.is_connected]

    def _stream_problems(self) -> list[str]:
        """One sentence for all endpoints that are away for the same reason."""
        ways: dict[str, list[Address]] = {}
        for endpoint in self._absent():
            ways.setdefault(self._connection_problem(endpoint), []).append(endpoint.address)
        return [way.replace("WHERE", _listed(addresses)) for way, addresses in ways.items()]

    def _connection_problem(self, endpoint: Endpoint) -> str:
        """A sentence with WHERE in the addresses' place."""
        if endpoint.address in self._taken:
            return _("Something listens at WHERE, but it publishes no KV events. Is it the right port?")
        if endpoint.was_connected:
            return _("The connection to WHERE is lost. It reconnects when the server is back.")
        if len(self._absent()) < self.addresses.num_ranks:
            return _("Nothing listens at WHERE, the port of another rank. Is the number of ranks right?")
        if self._scraper is not None and self._scraper.samples:
            how = _HOW_TO_ENABLE.get(self._scraper.samples[-1].server, VLLM_OPTION)
            return _("The server answers, but nothing listens at WHERE: events are off. Start it with {how}").format(
                how=how
            )
        return _(
            "Nothing listens at WHERE. Start the server there, or correct the address; this page then "
            "connects on its own."
        )

    def _stop_when_idle(self) -> None:
        """Now and then, also look whether an events address is taken by something of another kind."""
        while not self._stopped.wait(SECONDS_BETWEEN_CHECKS):
            absent = [endpoint.address for endpoint in self._absent()[:MOST_LISTED]]
            self._taken = frozenset(address for address in absent if is_listening(address))
            if self.seconds_idle > SECONDS_UNTIL_IDLE:
                self.stop()


def messages_left_out(count: int) -> str:
    """`12 messages of an unknown shape were left out.`"""
    return counted(
        "{n} message of an unknown shape was left out.", "{n} messages of an unknown shape were left out.", count
    )


def events_left_out(count: int) -> str:
    """`12 events that could not be read were left out.`"""
    return counted(
        "{n} event that could not be read was left out.", "{n} events that could not be read were left out.", count
    )


def _listed(addresses: Sequence[Address]) -> str:
    """`tcp://a:1 and tcp://a:2`, and how many more there are."""
    names = [str(address) for address in addresses[:MOST_LISTED]]
    if len(addresses) > MOST_LISTED:
        names.append(f"{len(addresses) - MOST_LISTED} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
