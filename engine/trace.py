"""The one log. The engine appends; everything else replays.

trace.append(event)          the engine, as things happen
trace.at(step)               the state after that step: a fold over the events up to it
trace.to_json() / from_json  the same trace in a file, drawn by the same pages
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.event_codec import event_from_dict, event_to_dict
from engine.events import Event
from engine.state import CacheState, ReplayError

SCHEMA_VERSION = 1
KEYFRAME_EVERY = 1024
"""Events between looks at whether to remember a state (see `Trace.at`)."""

MAX_STEPS = 1_000_000
"""Bound on steps, most of them idle in a hostile file, which must not ask for a huge index."""


class TraceError(ValueError):
    """A trace file that cannot be read. The message says which event and which field."""


@dataclass
class Trace:
    """Events in order, plus `info`: what the source says of itself (source, model, backend, dtype ...).

    `step` is the step being written: events are stamped with it by whoever appends them.
    """

    info: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    step: int = 0

    def __post_init__(self) -> None:
        self._keyframes: dict[int, CacheState] = {}
        self._step_starts: list[int] = []
        self._is_drained = False
        for index, event in enumerate(self.events):
            self._note_step(event.step, index)

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def copy(self) -> Trace:
        """The trace as it stands: what is appended here later is not there. (Events are immutable, so shared.)"""
        return Trace(dict(self.info), list(self.events), self.step)

    def append(self, event: Event) -> None:
        """Add one event. Steps never go back."""
        self._note_step(event.step, len(self.events))
        self.events.append(event)

    def drain(self) -> list[Event]:
        """Hand over what was logged since the last time and keep none of it, for a server that runs for ever.

        Steps are counted from 0 again, and `at` raises from then on: what is not kept cannot be replayed.
        """
        handed_over, self.events, self._step_starts, self.step = self.events, [], [], 0
        self._is_drained |= bool(handed_over)
        return handed_over

    @property
    def num_steps(self) -> int:
        """The last step any event carries."""
        return max(len(self._step_starts) - 1, 0)

    def events_of(self, step: int) -> Sequence[Event]:
        """The events stamped with `step`, in order."""
        if not 0 <= step <= self.num_steps or not self._step_starts:
            return []
        return self.events[self._step_starts[step] : self._end_of(step)]

    def at(self, step: int) -> CacheState:
        """The state after `step`. The caller owns the returned copy. Raises IndexError outside 0..num_steps.

        A state is remembered when as many events have passed as it has parts: copying never costs more than folding
        did, in time or in memory, and seeking replays about as many events as the state has parts.
        """
        if self._is_drained:
            raise ReplayError("this log was handed over as it grew, and cannot be replayed")
        if not 0 <= step <= self.num_steps:
            raise IndexError(f"Step {step} is outside this trace, which has steps 0 to {self.num_steps}.")
        start, state = self._nearest_keyframe(self._end_of(step))
        for index in range(start, self._end_of(step)):
            state.apply(self.events[index])
            if (index + 1) % KEYFRAME_EVERY == 0 and index + 1 - start >= state.size:
                start = index + 1
                self._keyframes[start] = state.copy()
        return state

    def to_json(self) -> str:
        """The whole trace as one JSON document."""
        return json.dumps(
            {"schema": SCHEMA_VERSION, "info": self.info, "events": [event_to_dict(e) for e in self.events]},
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read a trace, checking every field. Raises TraceError with the event's number and what is wrong."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"This is not a trace file: it is not JSON ({error}).") from error
        if not isinstance(document, dict) or document.get("schema") != SCHEMA_VERSION:
            raise TraceError(f"This is not a trace file of schema {SCHEMA_VERSION}.")
        info, raw_events = document.get("info", {}), document.get("events")
        if not isinstance(info, dict) or not isinstance(raw_events, list):
            raise TraceError("A trace file needs an `info` object and an `events` list.")
        trace = cls(info=info)
        for number, raw in enumerate(raw_events):
            try:
                trace.append(event_from_dict(raw))
            except ValueError as error:
                raise TraceError(f"Event {number}: {error}") from error
        trace.step = trace.num_steps
        trace._check_replays()
        return trace

    def _check_replays(self) -> None:
        try:
            self.at(self.num_steps)
        except ReplayError as error:
            raise TraceError(f"This trace contradicts itself: {error}") from error

    def _note_step(self, step: int, index: int) -> None:
        if step < self.num_steps or step < 0:
            raise ValueError(f"step {step} comes after step {self.num_steps}; steps never go back.")
        if step > MAX_STEPS:
            raise ValueError(f"step {step} is beyond step {MAX_STEPS}, the last a trace can have.")
        while len(self._step_starts) <= step:
            self._step_starts.append(index)

    def _end_of(self, step: int) -> int:
        return self._step_starts[step + 1] if step < self.num_steps else len(self.events)

    def _nearest_keyframe(self, end: int) -> tuple[int, CacheState]:
        """How many of the first `end` events are folded already, and a private copy of the state they give."""
        known = max((k for k in self._keyframes if k <= end), default=None)
        return (0, CacheState()) if known is None else (known, self._keyframes[known].copy())
