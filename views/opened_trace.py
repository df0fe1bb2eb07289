"""A trace file as somebody brings it: read, checked field by field, bounded, and made ready to be drawn."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from engine.trace import Trace
from views.frames import FrameStream

MAX_SLOTS = 65_536
"""Cells that the map can still show; a file of a few bytes can ask for millions."""
MAX_STEPS = 5_000


@dataclass(eq=False)
class OpenedTrace:
    """`frames`: the trace as the memory map plays it, one frame a step."""

    trace: Trace
    frames: FrameStream


def read_trace(text: str, title: str) -> OpenedTrace:
    """Raises ValueError with a plain sentence: what is wrong, and where."""
    _refuse_large_memory(text)
    trace = Trace.from_json(text)
    if not len(trace):
        raise ValueError("This trace is empty: it holds no event.")
    if trace.num_steps > MAX_STEPS:
        raise ValueError(
            f"This trace has {trace.num_steps} steps; the page draws at most {MAX_STEPS}. "
            "The command line takes longer ones: python -m engine.trace_tool print FILE"
        )
    frames = FrameStream(trace, title=title)
    frames.update()
    return OpenedTrace(trace, frames)


def _refuse_large_memory(text: str) -> None:
    """Before anything is replayed: replaying makes room for every slot. What is no trace is left to the reader."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    events = document.get("events") if isinstance(document, dict) else None
    for event in events if isinstance(events, list) else []:
        if isinstance(event, dict) and (num_slots := _num_slots(event)) > MAX_SLOTS:
            raise ValueError(f"This trace has a memory of {num_slots} slots; the page draws at most {MAX_SLOTS}.")


def _num_slots(event: dict[str, Any]) -> int:
    def whole(name: str) -> int:
        value = event.get(name)
        return value if isinstance(value, int) else 0

    if event.get("type") == "PoolCreated":
        return (whole("num_blocks") + whole("num_cpu_blocks")) * whole("block_size")
    return whole("num_slots") if event.get("type") == "ArenaCreated" else 0
