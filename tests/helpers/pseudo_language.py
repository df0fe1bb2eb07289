"""A made-up language, made from the English catalogue: every text is wrapped, longer by 40 % and still readable.

`⟦Slootss heeld⟧`: what stands outside of the brackets on a page was never translated.
"""

from __future__ import annotations

import re

KEPT = re.compile(r"(\{[^}]*\}|`[^`]*`|\]\([^)]*\)|\*\*|\n- |\n)")
"""Fields, code, addresses of links and marks: no words."""
LONGER = 1.4


def pseudo(english: str) -> str:
    """The text in the made-up language. Forms of a noun are forms again."""
    if re.fullmatch(r"(\w+)\|\1s", english):
        return "|".join(map(pseudo, english.split("|")))
    parts = KEPT.split(english)
    longer = "".join(part if i % 2 else re.sub(r"([aeiouAEIOU])", r"\1\1", part) for i, part in enumerate(parts))
    padding = "······· " * len(english)  # words of a usual length: lines can break
    return f"⟦{longer}{padding[: max(0, round(LONGER * len(english)) - len(longer) - 2)].rstrip()}⟧"


def untranslated(text: str) -> str:
    """What stands outside of all brackets."""
    before = None
    while before != text:
        before, text = text, re.sub(r"⟦[^⟦⟧]*⟧", " ", text)
    return text
