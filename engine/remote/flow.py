"""Blocks stored and removed in each second, and how many there were at its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.cache_events import BlockRemoved, BlockStored, MessageReceived
from engine.event_base import Event
from engine.trace import Trace

MAX_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Second:
    """`second`: whole seconds since 1970, by the server's clock. num_copies: stored at the end of it."""

    second: int
    num_stored: int
    num_removed: int
    num_copies: int


class Flow:
    """The last `MAX_SECONDS` seconds in which a message came; quiet seconds have no entry."""

    def __init__(self) -> None:
        self._seconds: deque[Second] = deque(maxlen=MAX_SECONDS)

    @property
    def seconds(self) -> tuple[Second, ...]:
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
            self._seconds.append(Second(second, stored, removed, num_copies))


def every_second(flow: Sequence[Second], last: int = MAX_SECONDS) -> list[Second]:
    """The newest `last` seconds with the quiet ones between: in those nothing is stored or removed."""
    if not flow:
        return []
    newest = flow[-1].second
    before = [second for second in flow if second.second <= newest - last]
    known = {second.second: second for second in flow}
    copies = before[-1].num_copies if before else 0
    filled = []
    for number in range(max(flow[0].second, newest - last + 1), newest + 1):
        second = known.get(number) or Second(number, 0, 0, copies)
        copies = second.num_copies
        filled.append(second)
    return filled


def flow_of(trace: Trace) -> tuple[Second, ...]:
    """The flow of a trace; empty when its source gives no times."""
    flow, state = Flow(), trace.at(0)
    for step in range(1, trace.num_steps + 1):
        events = trace.events_of(step)
        for event in events:
            state.apply(event)
        times = [event.timestamp for event in events if isinstance(event, MessageReceived)]
        if times:
            flow.add(times[-1], events, state.findable.num_copies)
    return flow.seconds
