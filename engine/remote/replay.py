"""Ask a server's replay socket for messages it has already sent.

The request is two frames, an empty one and the first number wanted (8 bytes, big endian). The server answers with
one message for each it still keeps, `[number, payload]` (older vLLM) or `[topic, number, payload]`, each behind an
empty frame or not, and a last one whose payload is empty. Amounts and time are bounded: the answers come from another
machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import zmq

from engine.remote.addresses import Address
from engine.remote.kv_events import MAX_PAYLOAD

SECONDS_FOR_AN_ANSWER = 1.5
SECONDS_FOR_ALL = 10.0
MAX_ANSWERS, MAX_BYTES = 100_000, 1 << 28

ReplayedMessage = tuple[int, bytes]
"""Number and payload of one message."""


def replayed(
    context: zmq.Context[Any], endpoint: Address, on_unknown: Callable[[], None], first: int
) -> Iterator[ReplayedMessage]:
    """Messages from number `first` on, in order, as far as the server keeps them. Ends early when it falls silent.

    `on_unknown` hears of each answer of another shape; it is left out.
    """
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_PAYLOAD)
    try:
        socket.connect(str(endpoint))
        socket.send_multipart([b"", first.to_bytes(8, "big")])
        deadline, num_bytes = time.monotonic() + SECONDS_FOR_ALL, 0
        for _index in range(MAX_ANSWERS):
            if time.monotonic() > deadline or not socket.poll(int(SECONDS_FOR_AN_ANSWER * 1000)):
                return
            frames = socket.recv_multipart()
            if is_end(frames) or num_bytes > MAX_BYTES:
                return
            answer = read_replayed(frames)
            if answer is None:
                on_unknown()
                num_bytes += sum(map(len, frames))
                continue
            num_bytes += len(answer[1])
            yield answer
    finally:
        socket.close()


def is_end(frames: list[bytes]) -> bool:
    """Whether it is the mark behind the last answer: shaped like one, and its payload is empty."""
    return 2 <= len(frames) <= 4 and len(frames[-2]) == 8 and not frames[-1]


def read_replayed(frames: list[bytes]) -> ReplayedMessage | None:
    """Number and payload; None for the end mark and for anything else that is no answer."""
    if not 2 <= len(frames) <= 4 or len(frames[-2]) != 8 or not frames[-1]:
        return None
    return int.from_bytes(frames[-2], "big"), frames[-1]
