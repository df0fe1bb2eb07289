"""Trace -> payload: the frames the memory map plays, made by folding the trace once.

frames_payload(trace)                 one frame a step: frame i is `trace.at(first + i)`
frames_payload(trace, granularity="event")    one frame each thing that happens to memory
states_payload(states)                one frame a value of a control: any states, any labels
FrameStream(trace)                    the same frames as a live trace grows, for a socket to send
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from engine.i18n import _
from engine.trace import events as ev
from engine.trace.state import CacheState
from engine.trace.trace import Trace
from views.memory_map.changes import changes
from views.memory_map.dirty import dirty_set_of
from views.memory_map.frame_encoder import Frame, FrameEncoder
from views.memory_map.labels import PALETTE
from views.memory_map.narration import headline, sentences

PAYLOAD_SCHEMA = 1
Payload = dict[str, Any]
Granularity = Literal["step", "event"]
Labeller = Callable[[int], str]


@dataclass(frozen=True)
class LabelledState:
    """One frame of a control: its label ("11 tokens"), the state to draw, what to say, what just happened, and which of
    it the caption says (default: what `headline` finds, else the first of `say`)."""

    label: str
    state: CacheState
    say: Sequence[str] = ()
    events: Sequence[ev.Event] = field(default=())
    headline: str = ""


def frames_payload(
    trace: Trace,
    *,
    granularity: Granularity = "step",
    first: int = 0,
    last: int | None = None,
    label: Labeller | None = None,
    title: str = "",
    trace_id: str | None = None,
) -> Payload:
    """Frames of steps `first` to `last` (both included; last None: to the end).

    `label(step)` names a frame (default "Step 3"). `trace_id` says when a new payload continues an old one, so
    that the map keeps its place; by default it is a digest of the frames. Raises IndexError for a step outside
    the trace.
    """
    last = trace.num_steps if last is None else last
    if not 0 <= first <= last <= trace.num_steps:
        raise IndexError(
            _("Steps {first} to {last} are not within this trace's 0 to {num_steps}.").format(
                first=first, last=last, num_steps=trace.num_steps
            )
        )
    writer = _FrameWriter(label or _step_label)
    for step in range(first):
        writer.fold(trace.events_of(step))
    frames = []
    for step in range(first, last + 1):
        groups = list(_GROUPINGS[granularity](trace.events_of(step)))
        for number, group in enumerate(groups, 1):
            part = f" · {number}/{len(groups)}" if len(groups) > 1 else ""
            frames.append(writer.frame(step, group, part))
    return _payload(frames, title, trace_id)


def states_payload(states: Iterable[LabelledState], *, title: str = "", trace_id: str | None = None) -> Payload:
    """Frames of any states, in order. The states need not follow from each other."""
    encoder = FrameEncoder()
    frames = []
    for shown in states:
        encoder.reset()
        frame = encoder.encode(shown.state)
        say = list(shown.say) or sentences(shown.events)
        named = _named(frame, shown.state.step, shown.label, say, shown.events)
        frames.append(named | ({"headline": shown.headline} if shown.headline else {}))
    return _payload(frames, title, trace_id)


@dataclass(frozen=True)
class FrameDelta:
    """The frames of a run that a map lacks: those from number `start` on, each as JSON."""

    trace_id: str
    start: int
    texts: list[str]

    @property
    def end(self) -> int:
        """The number behind its last frame: how many frames the map then has."""
        return self.start + len(self.texts)

    def as_json(self) -> str:
        """`{trace_id, from, frames}`"""
        return f'{{"trace_id": {json.dumps(self.trace_id)}, "from": {self.start}, "frames": [{", ".join(self.texts)}]}}'


class FrameStream:
    """Frames of a growing trace, step by step, for a live view.

    `texts` only grows: each frame is written as JSON once, for all who watch. (As lists and dicts they would also be
    most of what Python's garbage collector walks.) A frame with `amend` belongs to the one before it (something more
    happened in the same step, say a request arrived), so frame i stays the state after step i. Not thread-safe: one
    caller at a time, and the trace must not grow during `update`.
    """

    def __init__(
        self, trace: Trace, trace_id: str | None = None, *, title: str = "", label: Labeller | None = None
    ) -> None:
        """`trace_id` names the run (default: a new name): the map starts afresh when it changes."""
        self.texts: list[str] = []
        self.trace_id = trace_id or uuid.uuid4().hex
        self.title = title
        self._trace = trace
        self._writer = _FrameWriter(label or _step_label)
        self._num_read = 0
        self._step = -1

    def update(self) -> int:
        """Read what the trace has gained. Returns the number of frames so far, amendments included."""
        new_events = self._trace.events[self._num_read :]
        self._num_read += len(new_events)
        for step, events in groupby(new_events, key=lambda event: event.step):
            for idle_step in range(self._step + 1, step):
                self._add(self._writer.frame(idle_step, []))
            amends = {"amend": True} if step == self._step else {}
            self._add(self._writer.frame(step, list(events)) | amends)
            self._step = step
        return len(self.texts)

    def initial_payload(self) -> Payload:
        """A payload without frames, for a map that receives all of them over its WebSocket: the same small one at
        every rerun, however long the run."""
        return _payload([], self.title, self.trace_id) | {"is_open": True}

    def delta_since(self, trace_id: str | None, have: int) -> FrameDelta:
        """The frames that a map with the first `have` frames of run `trace_id` lacks; all of them for another run."""
        start = min(max(have, 0), len(self.texts)) if trace_id == self.trace_id else 0
        return FrameDelta(self.trace_id, start, self.texts[start:])

    def _add(self, frame: Frame) -> None:
        self.texts.append(json.dumps(frame))


class _FrameWriter:
    """Folds events and writes one frame a group of them."""

    def __init__(self, label: Labeller) -> None:
        self._label = label
        self._state = CacheState()
        self._encoder = FrameEncoder()

    def fold(self, events: Iterable[ev.Event]) -> None:
        for event in events:
            self._state.apply(event)

    def frame(self, step: int, events: Sequence[ev.Event], part: str = "") -> Frame:
        """`part` ("· 2/5") follows the label when a step has several frames."""
        self.fold(events)
        parents = {e.seq_id: e.parent_seq_id for e in events if isinstance(e, ev.SequenceForked)}
        frame = self._encoder.encode(self._state, dirty_set_of(events, self._state), parents)
        return _named(frame, step, self._label(step) + part, sentences(events), events)


def _named(frame: Frame, step: int, label: str, say: Sequence[str], events: Sequence[ev.Event]) -> Frame:
    moves = changes(events)
    named: Frame = {"step": step, "label": label, "say": list(say)}
    if events and (line := headline(events)) != say[0]:
        named["headline"] = line
    return named | ({"changes": moves} if moves else {}) | frame


def say_instead(frame: Frame, say: Sequence[str]) -> None:
    """Give a frame other sentences; the first of them is its caption."""
    frame["say"] = list(say)
    frame.pop("headline", None)


def digest(frames: list[Frame]) -> str:
    """A name for these frames: equal frames, equal name."""
    return hashlib.sha256(json.dumps(frames).encode()).hexdigest()[:16]


def _payload(frames: list[Frame], title: str, trace_id: str | None) -> Payload:
    return {
        "schema": PAYLOAD_SCHEMA,
        "trace_id": trace_id or digest(frames),
        "title": title,
        "palette": list(PALETTE),
        "frames": frames,
    }


def _step_label(step: int) -> str:
    return _("Step {step}").format(step=step) if step else _("Start")


def _whole_step(events: Sequence[ev.Event]) -> Iterator[Sequence[ev.Event]]:
    yield events


def _each_memory_event(events: Sequence[ev.Event]) -> Iterator[Sequence[ev.Event]]:
    """A frame ends with each event that moves memory; what follows the last one in a step is a frame of its own.

    The event that closes a step moves nothing and joins the frame before it.
    """
    groups: list[list[ev.Event]] = [[]]
    for event in events:
        ends_step_after_frame = event.group == "step" and len(groups) > 1 and not groups[-1]
        groups[-2 if ends_step_after_frame else -1].append(event)
        if event.group == "memory":
            groups.append([])
    yield from (group for group in groups if group)


_GROUPINGS: dict[Granularity, Callable[[Sequence[ev.Event]], Iterator[Sequence[ev.Event]]]] = {
    "step": _whole_step,
    "event": _each_memory_event,
}
