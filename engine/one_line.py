"""Foreign text for a terminal."""

from __future__ import annotations


def one_line(text: str) -> str:
    """The text on one line. Control characters are written out: a terminal must not obey them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
