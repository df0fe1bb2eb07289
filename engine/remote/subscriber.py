"""The sockets: a thread that listens to a server's KV events and never makes the server wait.

It only subscribes. ZMQ keeps a bounded queue for it and drops what does not fit, at the server's side too; what is
lost shows as a gap in the numbers and is asked for again. ZMQ connects anew by itself when a server goes and comes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from engine.remote.addresses import Address
from engine.remote.feed import Feed, Sink, no_replay
from engine.remote.kv_events import MAX_PAYLOAD
from engine.remote.replay import replayed

QUEUE_MESSAGES = 512
"""With the largest messages allowed this is 1 GiB; with real ones, below 100 MB."""
MILLISECONDS_BETWEEN_LOOKS = 200
MILLISECONDS_BEFORE_RECONNECT = (100, 2_000)
SECONDS_TO_STOP = 15.0


@dataclass
class _Line:
    """One endpoint: its subscription, the monitor of its connection, and the feed it fills."""

    feed: Feed
    events: zmq.Socket[bytes]
    monitor: zmq.Socket[bytes]
    is_connected: bool = False


class Subscriber:
    """`endpoint` for rank 0; with `num_ranks` above 1, each further rank has the next port. The same for `replay`."""

    def __init__(self, sink: Sink, endpoint: Address, replay: Address | None = None, num_ranks: int = 1) -> None:
        self._sink = sink
        self._endpoint, self._replay, self._num_ranks = endpoint, replay, num_ranks
        self._stop = threading.Event()
        self._lines: list[_Line] = []
        self._thread = threading.Thread(target=self._run, name="kv-events", daemon=True)

    @property
    def num_connected(self) -> int:
        """Endpoints that a server is behind, now."""
        return sum(line.is_connected for line in list(self._lines))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close its sockets."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)

    def _run(self) -> None:
        context: zmq.Context[Any] = zmq.Context()
        try:
            self._lines = [self._open(context, rank) for rank in range(self._num_ranks)]
            poller = zmq.Poller()
            for line in self._lines:
                poller.register(line.events, zmq.POLLIN)
                poller.register(line.monitor, zmq.POLLIN)
            while not self._stop.is_set():
                ready = dict(poller.poll(MILLISECONDS_BETWEEN_LOOKS))
                for line in self._lines:
                    self._serve(line, ready)
        except Exception:
            logging.getLogger(__name__).exception("the KV-event subscriber of %s failed", self._endpoint)
        finally:
            self._lines = []
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
        replay = no_replay if self._replay is None else partial(replayed, context, self._replay.of_rank(rank))
        feed = Feed(self._sink, replay, rank if self._num_ranks > 1 else None)
        events.connect(str(self._endpoint.of_rank(rank)))
        return _Line(feed, events, monitor)

    def _serve(self, line: _Line, ready: dict[Any, int]) -> None:
        if line.monitor in ready:
            self._note_connection(line)
        if line.events in ready:
            for sequence, payload in _received(line.events):
                line.feed.receive(sequence, payload)

    def _note_connection(self, line: _Line) -> None:
        event = recv_monitor_message(line.monitor)["event"]
        line.is_connected = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
        if line.is_connected:
            line.feed.catch_up()


def _received(events: zmq.Socket[bytes]) -> Iterator[tuple[int, bytes]]:
    """What waits in the queue, at most one queue's worth: numbers and payloads of messages of the right shape."""
    for _ in range(QUEUE_MESSAGES):
        try:
            frames = events.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        if len(frames) == 3 and len(frames[1]) == 8:
            yield int.from_bytes(frames[1], "big"), frames[2]
