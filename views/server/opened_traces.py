"""Trace files that visitors open: validated, bounded in size, with their frames, and found again by `trace_id`."""

from __future__ import annotations

import json
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine.i18n import _
from engine.trace.trace import Trace
from views.memory_map.frames import FrameStream

MAX_SLOTS = 65_536
"""The most that the memory map draws; a file of a few bytes can ask for millions."""
MAX_STEPS = 5_000


@dataclass(eq=False)
class OpenedTrace:
    """`frames`: the trace as the memory map plays it, one frame for each step."""

    trace: Trace
    frames: FrameStream


def read_trace(text: str, title: str) -> OpenedTrace:
    """Read a trace from JSON. Raises ValueError with one sentence that says what is wrong, and where."""
    _refuse_large_memory(text)
    trace = Trace.from_json(text)
    if not len(trace):
        raise ValueError(_("This trace is empty: it holds no event."))
    if trace.num_steps > MAX_STEPS:
        raise ValueError(
            _(
                "This trace has {num_steps} steps; the page shows at most {max_steps}. The command line takes "
                "longer ones: python -m engine.trace print FILE"
            ).format(num_steps=trace.num_steps, max_steps=MAX_STEPS)
        )
    frames = FrameStream(trace, title=title)
    frames.update()
    return OpenedTrace(trace, frames)


def _refuse_large_memory(text: str) -> None:
    """Before the trace is replayed, which allocates every slot. Other faults are left to `Trace.from_json`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    events = document.get("events") if isinstance(document, dict) else None
    for event in events if isinstance(events, list) else []:
        if isinstance(event, dict) and (num_slots := _num_slots(event)) > MAX_SLOTS:
            raise ValueError(
                _("This trace has a memory of {num_slots} slots; the page shows at most {max_slots}.").format(
                    num_slots=num_slots, max_slots=MAX_SLOTS
                )
            )


def _num_slots(event: dict[str, Any]) -> int:
    def whole(name: str) -> int:
        value = event.get(name)
        return value if isinstance(value, int) else 0

    if event.get("type") == "PoolCreated":
        return (whole("num_blocks") + whole("num_cpu_blocks")) * whole("block_size")
    return whole("num_slots") if event.get("type") == "ArenaCreated" else 0


class OpenedTraces:
    """The opened traces of all tabs, held weakly: the frames route serves a map its frames from here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces: weakref.WeakValueDictionary[str, OpenedTrace] = weakref.WeakValueDictionary()

    def add(self, opened: OpenedTrace) -> None:
        """Keep a trace, for its frames to be found by its id."""
        with self._lock:
            self._traces[opened.frames.trace_id] = opened

    def find(self, trace_id: str) -> OpenedTrace | None:
        """The opened trace whose frames have this `trace_id`."""
        with self._lock:
            return self._traces.get(trace_id)


@st.cache_resource(show_spinner=False)
def opened_traces() -> OpenedTraces:
    """One for the whole server."""
    return OpenedTraces()
