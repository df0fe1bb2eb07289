"""One endpoint's stream put in order: gaps filled or told, repeats dropped, restarts noticed. No sockets here.

A feed is told of messages as they come; what it takes goes to a sink (a `History`, a file), each once and in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from engine.remote.replay import Answer
from engine.remote.sequence import Numbers

MAX_SEQUENCE = 2**62
Replay = Callable[[int], Iterable[Answer]]
"""Messages from a number on, as far as the server keeps them."""


class Sink(Protocol):
    """Where messages go. `rank`: which of several endpoints; None when there is one."""

    def add_message(self, sequence: int, payload: bytes, rank: int | None = None, /) -> None: ...

    def add_gap(self, first: int, last: int, rank: int | None = None, /) -> None: ...

    def add_restart(self, rank: int | None = None, /) -> None: ...


def no_replay(_first: int) -> Iterable[Answer]:
    """For a server without a replay socket."""
    return ()


class Feed:
    """`rank`: which of several endpoints this is; None when there is one."""

    def __init__(self, sink: Sink, replay: Replay = no_replay, rank: int | None = None) -> None:
        self._sink = sink
        self._replay = replay
        self._rank = rank
        self._numbers = Numbers()
        self._has_seen_any = False

    @property
    def last(self) -> int:
        """The newest message's number, -1 before the first."""
        return self._numbers.last

    def receive(self, sequence: int, payload: bytes) -> None:
        """A message from the stream."""
        if not 0 <= sequence <= MAX_SEQUENCE:
            return
        verdict = self._numbers.judge(sequence, payload)
        if verdict == "repeat":
            return
        if verdict == "restart":
            self._start_over()
        self._fill(sequence)
        self._take(sequence, payload)

    def catch_up(self) -> None:
        """After connecting, first or again: take what was sent meanwhile, or start over with a server that is new."""
        if not self._has_seen_any:
            self._take_all(self._replay(0))
            return
        answers = iter(self._replay(self.last))
        first = next(answers, None)
        if first is None:
            self._take_all_anew(list(self._replay(0)))
        elif first[0] == self.last and self._numbers.judge(*first) == "repeat":
            self._take_all(answers)
        elif first[0] <= self.last:
            self._take_all_anew(list(self._replay(0)))
        else:
            self._take_all([first, *answers])

    def _take_all_anew(self, answers: list[Answer]) -> None:
        """A server that does not know our last message is a new one; if it says nothing, its next message will tell."""
        if answers:
            self._start_over()
            self._take_all(answers)

    def _take_all(self, answers: Iterable[Answer]) -> None:
        for sequence, payload in answers:
            if self.last < sequence <= MAX_SEQUENCE:
                self._tell_gap(sequence)
                self._take(sequence, payload)

    def _fill(self, sequence: int) -> None:
        """Take what lies between the last message and this one from the replay socket; tell what is not there."""
        if sequence > self.last + 1:
            for earlier, payload in self._replay(self.last + 1):
                if earlier >= sequence:
                    break
                if earlier > self.last:
                    self._tell_gap(earlier)
                    self._take(earlier, payload)
        self._tell_gap(sequence)

    def _tell_gap(self, sequence: int) -> None:
        if sequence > self.last + 1:
            self._sink.add_gap(self.last + 1, sequence - 1, self._rank)

    def _take(self, sequence: int, payload: bytes) -> None:
        self._numbers.take(sequence, payload)
        self._has_seen_any = True
        self._sink.add_message(sequence, payload, self._rank)

    def _start_over(self) -> None:
        self._numbers.restart()
        self._sink.add_restart(self._rank)
