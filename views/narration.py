"""What a step says: the events' own sentences, in the order a listener wants them."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Event, SequenceScheduled, SlotsWritten, TokenSampled
from engine.trace import Trace

QUIET = "Nothing changes."
_ROUTINE = (SequenceScheduled, SlotsWritten, TokenSampled)
"""What every running sequence does in every step: told last, so that what is special is heard first."""


def sentences(events: Iterable[Event]) -> list[str]:
    """One sentence an event: the beat first ("Step 3 ran 9 tokens."), then what is special, then routine."""
    beats: list[str] = []
    special: list[str] = []
    routine: list[str] = []
    for event in events:
        told = beats if event.group == "beat" else routine if isinstance(event, _ROUTINE) else special
        told.append(event.describe())
    return beats + special + routine or [QUIET]


def step_text(trace: Trace, step: int) -> str:
    """All sentences of a step as one paragraph: the text twin of the picture after that step."""
    return " ".join(sentences(trace.events_of(step)))
