"""The root of every event, and the words that their sentences share."""

from __future__ import annotations

from typing import ClassVar

from engine.i18n import _
from engine.trace.record import record


def percentage(percent: float, decimals: int = 0) -> str:
    """`56`, `99.9`: a share of 0 to 100 with so many decimals, without its sign.

    It is never 0 or 100 for what is not: such a share takes one decimal more, and stays inside by the last of them.
    """
    text = f"{percent:,.{decimals}f}"
    if 0 < percent < 100 and float(text) in (0, 100):
        smallest = 10.0 ** -(decimals + 1)
        text = f"{min(max(percent, smallest), 100 - smallest):.{decimals + 1}f}"
    return text


def token_span(start: int, count: int) -> str:
    """`token 4`, `tokens 4 to 7`: positions in words, both ends included."""
    text = _("token {first}") if count == 1 else _("tokens {first} to {last}")
    return text.format(first=start, last=start + count - 1)


def slot_span(start: int, count: int) -> str:
    """`slot 4`, `slots 4 to 7`."""
    text = _("slot {first}") if count == 1 else _("slots {first} to {last}")
    return text.format(first=start, last=start + count - 1)


def ended(text: str) -> str:
    """The text with a full stop behind it, when it has none: reasons may be sentences or bare figures."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def one_line(text: str) -> str:
    """The text on one line. Control characters are written out: a terminal must not obey them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@record
class Event:
    """One thing that happened. `step` counts scheduler iterations from 1; 0 is before the first."""

    step: int
    group: ClassVar[str] = "request"

    def describe(self) -> str:
        """One plain sentence: the screen-reader text, the narration and the log line."""
        raise NotImplementedError
