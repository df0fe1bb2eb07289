"""The root of every event, and the words that their sentences share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


def plural(count: int, noun: str) -> str:
    """`1 block`, `2,048 blocks`: a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def span(start: int, count: int, noun: str) -> str:
    """`token 4`, `tokens 4 to 7`: positions in words, both ends included."""
    return f"{noun} {start}" if count == 1 else f"{noun}s {start} to {start + count - 1}"


def ended(text: str) -> str:
    """The text with a full stop behind it, when it has none: reasons may be sentences or bare figures."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `step` counts scheduler iterations from 1; 0 is before the first."""

    step: int
    group: ClassVar[str] = "request"

    def describe(self) -> str:
        """One plain sentence: the screen-reader text, the narration and the log line."""
        raise NotImplementedError
