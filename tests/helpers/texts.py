"""Texts whose characters span several bytes, code points and tokens; and a text without its fields."""

from __future__ import annotations

from string import Formatter

from course.messages import Message, Plural, Text

TEXTS = [
    "The red fox jumps.",
    "Café, naïve, cafe\u0301",  # one accent composed, one combining
    "👩\u200d👩\u200d👧\u200d👦 and 🏳️\u200d🌈",
    "日本語のテキスト",
    "مرحبا بالعالم",
    "tabs\tand  blanks   \n\n  kept ",
    "",
]


def literal_text(text: Text) -> str:
    """What is written in the text, without what its fields show."""
    match text:
        case Message(template=template) | Plural(many=template) | str(template):
            return "".join(words for words, *_rest in Formatter().parse(template))
    return ""
