"""What a step says: the events' own sentences, in the order a listener wants them."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Event
from engine.trace import Trace

QUIET = "Nothing changes."


def sentences(events: Iterable[Event]) -> list[str]:
    """One sentence an event, the beat of the step first ("Step 3 ran 9 tokens."), then what happened in it."""
    beats: list[str] = []
    happenings: list[str] = []
    for event in events:
        (beats if event.group == "beat" else happenings).append(event.describe())
    return beats + happenings or [QUIET]


def step_text(trace: Trace, step: int) -> str:
    """All sentences of a step as one paragraph: the text twin of the picture after that step."""
    return " ".join(sentences(trace.events_of(step)))
