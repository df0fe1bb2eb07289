"""The one log. The engine appends; everything else replays.

trace.append(event)          the engine, as things happen
trace.at(step)               the state after that step: a fold over the events up to it
trace.to_json() / from_json  the same trace in a file, drawn by the same pages
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.i18n import _
from engine.trace.codec import event_from_dict, event_to_dict, unknown_fields
from engine.trace.events import Event, SlotsWritten
from engine.trace.state import CacheState, ReplayError

SCHEMA_VERSION = 1
KEYFRAME_EVERY = 1024
"""Events between looks at whether to remember a state (see `Trace.at`)."""

MAX_STEPS = 1_000_000
"""Bound on the steps without an event in a file, which must not ask for a huge index. A run has none.

A run appends at least one event a step, so it may go on for ever and be read again."""
MAX_UNKNOWN_FIELDS = 20
"""Names kept of the fields in a file that this program does not know."""


class TraceError(ValueError):
    """A trace file that cannot be read. The message says which event and which field."""


@dataclass
class Trace:
    """Events in order, plus `info`: what the source says of itself (source, model, backend, dtype ...).

    `step` is the step being written: events are stamped with it by whoever appends them.
    `unknown_fields`: names in the file it was read from that this program does not know and left out, once each, such
    as `BlockRemoved.kv_cache_spec_kind`; at most MAX_UNKNOWN_FIELDS.
    """

    info: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    step: int = 0
    unknown_fields: list[str] = field(default_factory=list, compare=False)

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
        return Trace(dict(self.info), list(self.events), self.step, list(self.unknown_fields))

    def append(self, event: Event) -> None:
        """Add one event. Steps never go back."""
        last = len(self._step_starts) - 1
        if event.step != last or last < 0:
            self._note_step(event.step, len(self.events))
        self.events.append(event)

    def append_all(self, events: Sequence[Event]) -> None:
        """Add events of one step, in order."""
        if events:
            self.append(events[0])
            self.events += events[1:]

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
            raise ReplayError(_("this log was passed on while it grew, so it cannot be replayed"))
        if not 0 <= step <= self.num_steps:
            raise IndexError(
                _("Step {step} is outside this trace, which has steps 0 to {num_steps}.").format(
                    step=step, num_steps=self.num_steps
                )
            )
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
            raise TraceError(_("This is not a trace file: it is not JSON ({error}).").format(error=error)) from error
        if not isinstance(document, dict) or document.get("schema") != SCHEMA_VERSION:
            raise TraceError(
                _("This is not a trace file of schema {schema_version}.").format(schema_version=SCHEMA_VERSION)
            )
        info, raw_events = document.get("info", {}), document.get("events")
        if not isinstance(info, dict) or not isinstance(raw_events, list):
            raise TraceError(_("A trace file needs an `info` object and an `events` list."))
        trace = cls(info=info)
        unknown = dict.fromkeys(name for name in document if name not in ("schema", "info", "events"))
        for number, raw in enumerate(raw_events):
            try:
                event = event_from_dict(raw)
                if event.step > MAX_STEPS + number:
                    raise ValueError(
                        _("step {step} is beyond step {max_steps}, the last it can have.").format(
                            step=event.step, max_steps=MAX_STEPS + number
                        )
                    )
                trace.append(event)
            except ValueError as error:
                raise TraceError(_("Event {number}: {error}").format(number=number, error=error)) from error
            if len(unknown) < MAX_UNKNOWN_FIELDS:
                unknown |= dict.fromkeys(f"{raw['type']}.{name}" for name in unknown_fields(raw))
        trace.unknown_fields = list(unknown)[:MAX_UNKNOWN_FIELDS]
        trace.step = trace.num_steps
        trace._check_replays()
        return trace

    def _check_replays(self) -> None:
        try:
            self.at(self.num_steps)
        except ReplayError as error:
            raise TraceError(_("This trace contradicts itself: {error}").format(error=error)) from error

    def _note_step(self, step: int, index: int) -> None:
        if step < self.num_steps or step < 0:
            raise ValueError(
                _("step {step} comes after step {num_steps}; steps never go back.").format(
                    step=step, num_steps=self.num_steps
                )
            )
        while len(self._step_starts) <= step:
            self._step_starts.append(index)

    def _end_of(self, step: int) -> int:
        return self._step_starts[step + 1] if step < self.num_steps else len(self.events)

    def _nearest_keyframe(self, end: int) -> tuple[int, CacheState]:
        """How many of the first `end` events are folded already, and a private copy of the state they give."""
        # A list, made in one go: another thread that reads the same trace may add a keyframe meanwhile.
        known = max((k for k in list(self._keyframes) if k <= end), default=None)
        return (0, CacheState()) if known is None else (known, self._keyframes[known].copy())


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
