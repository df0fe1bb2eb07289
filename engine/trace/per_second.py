"""Blocks stored and removed in each second, and how many there were at its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.trace.cache_events import BlockRemoved, BlockStored, MessageReceived
from engine.trace.event_base import Event
from engine.trace.trace import Trace

MAX_SECONDS = 900


@dataclass(frozen=True, slots=True)
class SecondStats:
    """`second`: whole seconds since 1970, by the server's clock. num_copies: stored at the end of it."""

    second: int
    num_stored: int
    num_removed: int
    num_copies: int


class PerSecondStats:
    """The last `MAX_SECONDS` seconds in which a message came; quiet seconds have no entry."""

    def __init__(self) -> None:
        self._seconds: deque[SecondStats] = deque(maxlen=MAX_SECONDS)

    @property
    def seconds(self) -> tuple[SecondStats, ...]:
        """The seconds kept, in order."""
        return tuple(self._seconds)

    def add(self, timestamp: float, events: Iterable[Event], num_copies: int) -> None:
        """Count the events of one message, after which `num_copies` are stored."""
        stored = removed = 0
        for event in events:
            stored += isinstance(event, BlockStored)
            removed += isinstance(event, BlockRemoved)
        second = int(timestamp)
        last = self._seconds[-1] if self._seconds else None
        if last is not None and last.second >= second:  # ranks' clocks may differ a little
            self._seconds[-1] = replace(
                last, num_stored=last.num_stored + stored, num_removed=last.num_removed + removed, num_copies=num_copies
            )
        else:
            self._seconds.append(SecondStats(second, stored, removed, num_copies))


def per_second_of(trace: Trace) -> tuple[SecondStats, ...]:
    """Statistics of a trace by seconds; empty when its source gives no times."""
    stats, state = PerSecondStats(), trace.at(0)
    for step in range(1, trace.num_steps + 1):
        events = trace.events_of(step)
        for event in events:
            state.apply(event)
        times = [event.timestamp for event in events if isinstance(event, MessageReceived)]
        if times:
            stats.add(times[-1], events, state.prefix_cache.num_copies)
    return stats.seconds
