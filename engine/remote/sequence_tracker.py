"""Classifies messages by their sequence number: next, gap, repeat, or the restart of the server.

    tracker = SequenceTracker()
    tracker.classify(7, payload)        "next", "repeat", "gap" or "restart"

A message that comes twice (from the replay socket and from the stream) is told from a restart by its content.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Literal

MessageKind = Literal["next", "repeat", "gap", "restart"]
NUM_REMEMBERED = 10_000
"""Digests kept; as many messages as vLLM keeps for replay."""


class SequenceTracker:
    """One stream's messages. `last`: the number of the newest one taken, -1 before the first."""

    def __init__(self) -> None:
        self.last = -1
        self._digests: OrderedDict[int, bytes] = OrderedDict()

    def classify(self, sequence: int, payload: bytes) -> MessageKind:
        """The kind of this message, given those recorded before."""
        if sequence == self.last + 1:
            return "next"
        if sequence > self.last:
            return "gap"
        return "repeat" if self._digests.get(sequence) == _digest(payload) else "restart"

    def record(self, sequence: int, payload: bytes) -> None:
        """Remember this message as the newest."""
        self.last = sequence
        self._digests[sequence] = _digest(payload)
        if len(self._digests) > NUM_REMEMBERED:
            self._digests.popitem(last=False)

    def restart(self) -> None:
        """Forget everything: a new server counts from 0."""
        self.__init__()  # type: ignore[misc]


def _digest(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=8).digest()
