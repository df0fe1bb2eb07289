"""One endpoint's stream in order: gaps filled or reported, repeats dropped, restarts detected. No sockets here.

`Feed.receive` takes messages as they arrive; each goes to a sink (a `History`, a file) once and in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from engine.remote.replay import ReplayedMessage
from engine.remote.sequence_tracker import SequenceTracker

MAX_SEQUENCE = 2**62
Replay = Callable[[int], Iterable[ReplayedMessage]]
"""Messages from a number on, as far as the server keeps them."""


class Sink(Protocol):
    """Where messages go. `rank`: which of several endpoints; None when there is one."""

    def add_message(self, sequence: int, payload: bytes, rank: int | None = None, /) -> None:
        """Take the next message of the stream, with its sequence number."""
        ...

    def add_gap(self, first: int, last: int, rank: int | None = None, /) -> None:
        """Messages `first` to `last` were not received."""
        ...

    def add_restart(self, rank: int | None = None, /) -> None:
        """The server has restarted: sequence numbers start again."""
        ...


def no_replay(_first: int) -> Iterable[ReplayedMessage]:
    """For a server without a replay socket."""
    return ()


class Feed:
    """`rank`: which of several endpoints this is; None when there is one."""

    def __init__(self, sink: Sink, replay: Replay = no_replay, rank: int | None = None) -> None:
        self._sink = sink
        self._replay = replay
        self._rank = rank
        self._tracker = SequenceTracker()
        self._has_seen_any = False

    @property
    def last(self) -> int:
        """The newest message's number, -1 before the first."""
        return self._tracker.last

    def receive(self, sequence: int, payload: bytes) -> bool:
        """A message from the stream. False when its number is none that a message can have."""
        if not 0 <= sequence <= MAX_SEQUENCE:
            return False
        kind = self._tracker.classify(sequence, payload)
        if kind == "repeat":
            return True
        if kind == "restart":
            self._start_over()
        self._fill_gap(sequence)
        self._record(sequence, payload)
        return True

    def catch_up(self) -> None:
        """After connecting, first or again: take what was sent meanwhile, or start over with a server that is new."""
        if not self._has_seen_any:
            self._record_all(self._replay(0))
            return
        answers = iter(self._replay(self.last))
        first = next(answers, None)
        if first is None:
            self._restart_from(list(self._replay(0)))
        elif first[0] == self.last and self._tracker.classify(*first) == "repeat":
            self._record_all(answers)
        elif first[0] <= self.last:
            self._restart_from(list(self._replay(0)))
        else:
            self._record_all([first, *answers])

    def _restart_from(self, answers: list[ReplayedMessage]) -> None:
        """A server that does not know our last message is a new one; without answers its next message tells."""
        if answers:
            self._start_over()
            self._record_all(answers)

    def _record_all(self, answers: Iterable[ReplayedMessage]) -> None:
        for sequence, payload in answers:
            if self.last < sequence <= MAX_SEQUENCE:
                self._report_gap(sequence)
                self._record(sequence, payload)

    def _fill_gap(self, sequence: int) -> None:
        """Take what lies between the last message and this one from the replay socket; report what is missing there."""
        if sequence > self.last + 1:
            for earlier, payload in self._replay(self.last + 1):
                if earlier >= sequence:
                    break
                if earlier > self.last:
                    self._report_gap(earlier)
                    self._record(earlier, payload)
        self._report_gap(sequence)

    def _report_gap(self, sequence: int) -> None:
        if sequence > self.last + 1:
            self._sink.add_gap(self.last + 1, sequence - 1, self._rank)

    def _record(self, sequence: int, payload: bytes) -> None:
        self._tracker.record(sequence, payload)
        self._has_seen_any = True
        self._sink.add_message(sequence, payload, self._rank)

    def _start_over(self) -> None:
        self._tracker.restart()
        self._sink.add_restart(self._rank)
