"""The sockets: a thread that listens to a server's KV events and never makes the server wait.

It only subscribes. ZMQ keeps a bounded queue for it and drops what does not fit, at the server's side too; what is
lost shows as a gap in the numbers and is asked for again. ZMQ connects anew by itself when a server goes and comes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from engine.remote.addresses import Address
from engine.remote.feed import Feed, Replay, Sink, no_replay
from engine.remote.kv_events import MAX_PAYLOAD
from engine.remote.replay import replayed
from engine.remote.stoppable_thread import StoppableThread

QUEUE_MESSAGES = 512
"""With the largest messages allowed this is 1 GiB; with real ones, below 100 MB."""
POLL_MILLISECONDS = 200
MILLISECONDS_BEFORE_RECONNECT = (100, 2_000)
SECONDS_TO_STOP = 15.0


@dataclass
class Endpoint:
    """Where one rank publishes. `is_connected`: whether a server is behind it, now."""

    address: Address
    is_connected: bool = False
    was_connected: bool = False


@dataclass(frozen=True)
class _Line:
    """One endpoint's subscription, the monitor of its connection, and the feed it fills."""

    endpoint: Endpoint
    feed: Feed
    events: zmq.Socket[bytes]
    monitor: zmq.Socket[bytes]


class Subscriber(StoppableThread):
    """`endpoint` for rank 0; with `num_ranks` above 1, each further rank has the next port. The same for `replay`.

    `num_unknown`: messages that were none of a KV-event stream's by their frames, and were left out. Answers of the
    replay socket count, too.
    """

    def __init__(self, sink: Sink, endpoint: Address, replay: Address | None = None, num_ranks: int = 1) -> None:
        super().__init__("kv-events", SECONDS_TO_STOP)
        self._sink = sink
        self._replay = replay
        self.endpoints = [Endpoint(endpoint.of_rank(rank)) for rank in range(num_ranks)]
        self.num_unknown = 0

    def run(self) -> None:
        """The thread's work: connect, listen, and close the sockets at the end."""
        context: zmq.Context[Any] = zmq.Context()
        try:
            lines = [self._open(context, rank) for rank in range(len(self.endpoints))]
            poller = zmq.Poller()
            for line in lines:
                poller.register(line.events, zmq.POLLIN)
                poller.register(line.monitor, zmq.POLLIN)
            while not self._stopping.is_set():
                ready = dict(poller.poll(POLL_MILLISECONDS))
                for line in lines:
                    self._serve(line, ready)
        except Exception:
            logging.getLogger(__name__).exception("the KV-event subscriber of %s failed", self.endpoints[0].address)
        finally:
            for endpoint in self.endpoints:
                endpoint.is_connected = False
            context.destroy(linger=0)

    def _open(self, context: zmq.Context[Any], rank: int) -> _Line:
        events = context.socket(zmq.SUB)
        events.setsockopt(zmq.LINGER, 0)
        events.setsockopt(zmq.RCVHWM, QUEUE_MESSAGES)
        events.setsockopt(zmq.MAXMSGSIZE, MAX_PAYLOAD)
        events.setsockopt(zmq.RECONNECT_IVL, MILLISECONDS_BEFORE_RECONNECT[0])
        events.setsockopt(zmq.RECONNECT_IVL_MAX, MILLISECONDS_BEFORE_RECONNECT[1])
        events.setsockopt(zmq.IPV6, 1)
        events.setsockopt(zmq.SUBSCRIBE, b"")
        monitor = events.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        replay: Replay = no_replay
        if self._replay is not None:
            replay = partial(replayed, context, self._replay.of_rank(rank), self._count_unknown)
        feed = Feed(self._sink, replay, rank if len(self.endpoints) > 1 else None)
        endpoint = self.endpoints[rank]
        events.connect(str(endpoint.address))
        return _Line(endpoint, feed, events, monitor)

    def _serve(self, line: _Line, ready: dict[Any, int]) -> None:
        if line.monitor in ready:
            self._note_connection(line)
        if line.events in ready:
            for frames in _received(line.events):
                is_message = len(frames) == 3 and len(frames[1]) == 8
                if not is_message or not line.feed.receive(int.from_bytes(frames[1], "big"), frames[2]):
                    self._count_unknown()

    def _count_unknown(self) -> None:
        self.num_unknown += 1

    def _note_connection(self, line: _Line) -> None:
        event = recv_monitor_message(line.monitor)["event"]
        line.endpoint.is_connected = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
        if line.endpoint.is_connected:
            line.endpoint.was_connected = True
            line.feed.catch_up()


def _received(events: zmq.Socket[bytes]) -> Iterator[list[bytes]]:
    """The frames of what waits in the queue, at most one queue's worth of messages."""
    for _index in range(QUEUE_MESSAGES):
        try:
            yield events.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
