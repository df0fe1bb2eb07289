"""Text that remembers what it was made of, so that another language can make its own from the same facts.

    said("{free:slot} of {waste.num_held} are free.", free=3, waste=counted)      3 slots of 8 are free.

It is the English text, and nobody who does not translate need know that it is more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from engine.event_base import plural


class Said(str):
    """English text, with its template and the facts that fill it."""

    template: str
    facts: Mapping[str, Any]

    def __new__(cls, template: str, facts: Mapping[str, Any]) -> Said:
        text = super().__new__(cls, ENGLISH.fill(template, facts))
        text.template, text.facts = template, facts
        return text


class Teller(Formatter):
    """Fills templates in English. Other languages say otherwise what `words` and `counted` say here."""

    def words(self, english: str) -> str:
        """Text or a template as this language says it."""
        return english

    def counted(self, count: int, noun: str) -> str:
        """A count with its noun: `1 slot`, `9 slots`."""
        return plural(count, noun)

    def say(self, text: str) -> str:
        """Text in this language; its own facts, where it remembers them."""
        return self.fill(text.template, text.facts) if isinstance(text, Said) else self.words(text)

    def fill(self, template: str, facts: Mapping[str, Any]) -> str:
        """The template with its fields filled in. Raises KeyError or AttributeError for a field nobody counted."""
        return self.vformat(self.words(template), (), facts)

    def format_field(self, value: Any, format_spec: str) -> str:
        """`{field:slot}` counts things in words; other specs are Python's own, with a blank before a percent sign."""
        if isinstance(value, Said):
            value = self.say(value)
        elif isinstance(value, int) and self.is_noun(format_spec):
            return self.counted(value, format_spec)
        text = str(super().format_field(value, format_spec))
        return f"{text[:-1]} %" if format_spec.endswith("%") else text

    @staticmethod
    def is_noun(format_spec: str) -> bool:
        """Whether a field's spec names what is counted."""
        return len(format_spec) > 1 and format_spec.isalpha()


ENGLISH = Teller()


def said(template: str, **facts: Any) -> Said:
    """The template filled in English; see `Said`."""
    return Said(template, facts)
