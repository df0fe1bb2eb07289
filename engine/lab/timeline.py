"""A trace as one pass over its states, for counts at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.events import SlotsWritten
from engine.state import CacheState
from engine.trace import Trace


def states(trace: Trace) -> Iterator[CacheState]:
    """The state after step 0, 1, ... to the last. It is one object that is folded on: count it, do not keep it."""
    state = CacheState()
    for step in range(trace.num_steps + 1):
        for event in trace.events_of(step):
            state.apply(event)
        yield state


def peak(trace: Trace, count: Callable[[CacheState], int]) -> int:
    """The largest count at any moment at which something was just written.

    Looks inside steps: a block that is taken and given back within one step is seen, too.
    """
    state, highest = CacheState(), 0
    for event in trace:
        state.apply(event)
        if isinstance(event, SlotsWritten):
            highest = max(highest, count(state))
    return highest
