"""Publish KV events as vLLM does: a PUB socket with numbered messages, and a socket that sends old ones again.

Used by our own server, by `python -m engine.remote replay` and by the tests.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import zmq

from engine.i18n import _

TOPIC = b"kv-events"
NUM_KEPT = 10_000
END_OF_REPLAY = (-1).to_bytes(8, "big", signed=True)
POLL_MILLISECONDS = 100
SECONDS_TO_STOP = 5.0


class PublishError(ValueError):
    """The address cannot be taken. One plain sentence."""


class Publisher:
    """Bind at `endpoint` (`tcp://127.0.0.1:5557`; port 0 takes a free one) and, for old messages, at `replay`.

    `publish` never waits: a subscriber that is too slow loses messages, and can ask for them again.
    """

    def __init__(self, endpoint: str, replay: str | None = None, *, topic: bytes = TOPIC, first: int = 0) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._topic = topic
        self._next = first
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=NUM_KEPT)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._events = self._bound(zmq.PUB, endpoint)
        self.endpoint = self._events.getsockopt_string(zmq.LAST_ENDPOINT)
        self.replay_endpoint: str | None = None
        self._thread: threading.Thread | None = None
        if replay is not None:
            router = self._bound(zmq.ROUTER, replay)
            self.replay_endpoint = router.getsockopt_string(zmq.LAST_ENDPOINT)
            self._thread = threading.Thread(target=self._serve_replay, args=(router,), name="kv-replay", daemon=True)
            self._thread.start()

    def publish(self, payload: bytes) -> int:
        """Send one message to whoever listens. Returns its number."""
        with self._lock:
            number = self._next
            self._next += 1
            self._kept.append((number, payload))
            self._events.send_multipart([self._topic, number.to_bytes(8, "big"), payload])
        return number

    def close(self) -> None:
        """Stop answering; returns once the thread has ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(SECONDS_TO_STOP)
        with self._lock:
            self._context.destroy(linger=0)

    def _bound(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.setsockopt(zmq.SNDHWM, NUM_KEPT)
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise PublishError(
                _("Events cannot be published at {endpoint}: {error}.").format(endpoint=endpoint, error=error)
            ) from None
        return socket

    def _serve_replay(self, router: zmq.Socket[bytes]) -> None:
        while not self._stop.is_set():
            if router.poll(POLL_MILLISECONDS):
                self._answer(router, router.recv_multipart())

    def _answer(self, router: zmq.Socket[bytes], request: list[bytes]) -> None:
        """`[client, "", first number]` is answered by every kept message from that number on, and an end mark."""
        if len(request) != 3 or len(request[2]) != 8:
            return
        client, first = request[0], int.from_bytes(request[2], "big")
        with self._lock:
            wanted = [(number, payload) for number, payload in self._kept if number >= first]
        for number, payload in wanted:
            router.send_multipart([client, b"", *self.replay_frames(self._topic, number.to_bytes(8, "big"), payload)])
        router.send_multipart([client, b"", *self.replay_frames(b"", END_OF_REPLAY, b"")])

    def replay_frames(self, topic: bytes, number: bytes, payload: bytes) -> list[bytes]:
        """One answer, as vLLM 0.32 gives it; older ones leave the topic out."""
        return [topic, number, payload]
