"""Sentences that wait for their facts: written once at the top of a module, filled frame by frame.

    N_("{waste.num_empty} of {waste.num_held} are empty.")                     a plain text with fields
    Plural("waste.free", "{n} slot is free.", "{n} slots are free.")           one count
    Message(N_("{tokens} in {blocks}."), tokens=Plural(...), blocks=Plural(...))   several counts

    fill(Plural("waste.free", "{n} slot is free.", "{n} slots are free."), {"waste": waste})    9 slots are free.

Numbers come from the facts by the name of a field, so no sentence can hold a number that nobody counted, and a test can
read which field each shown number came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from engine.i18n import _, counted
from engine.trace.event_base import percentage

Facts = Mapping[str, Any]
"""What sentences may name: records such as `Waste` and `Usage`, and single counts."""
_FORMATTER = Formatter()


class Message:
    """A text whose placeholders are sentences of their own: one for each count, or a share."""

    def __init__(self, template: str, **parts: Text) -> None:
        self.template, self.parts = template, parts

    def fill(self, facts: Facts) -> str:
        """The text in this language, with every part filled in."""
        return _(self.template).format(**{**facts, **{name: fill(part, facts) for name, part in self.parts.items()}})

    def fields(self) -> Iterator[str]:
        """The fields that the text and its parts name, in order."""
        yield from _fields(self.template, self.parts)


class Plural:
    """A text that agrees with the count in `field`. `{n}` is that count; other fields are the facts'."""

    def __init__(self, field: str, one: str, many: str, **parts: Text) -> None:
        self.field, self.one, self.many, self.parts = field, one, many, parts

    def fill(self, facts: Facts) -> str:
        """The form that the count takes, with its fields filled in."""
        parts = {name: fill(part, facts) for name, part in self.parts.items()}
        return counted(self.one, self.many, _value(self.field, facts), **{**facts, **parts})

    def fields(self) -> Iterator[str]:
        """The fields that the text and its parts name, in order."""
        yield from _fields(self.many, {"n": self.field, **self.parts})


@dataclass(frozen=True)
class Percent:
    """A share with its sign, `56 %`, never rounded to nothing or to all. `of_one`: the field goes from 0 to 1."""

    field: str
    decimals: int = 0
    of_one: bool = False

    def fill(self, facts: Facts) -> str:
        """The share in percent with its sign."""
        share = _value(self.field, facts)
        return f"{percentage(100 * share if self.of_one else share, self.decimals)} %"

    def fields(self) -> Iterator[str]:
        """The one field that it shows."""
        yield self.field


Text = str | Message | Plural | Percent


def fill(text: Text, facts: Facts) -> str:
    """The text in this language with its fields filled in. Raises KeyError or AttributeError for an unknown field."""
    return _(text).format(**facts) if isinstance(text, str) else text.fill(facts)


def field_names(text: Text) -> list[str]:
    """The fields that the text shows, in order."""
    return list(_fields(text, {}) if isinstance(text, str) else text.fields())


def _fields(template: str, parts: Mapping[str, Text]) -> Iterator[str]:
    for _words, name, _spec, _conversion in _FORMATTER.parse(template):
        part = parts.get(name or "")
        if isinstance(part, str):
            yield part
        elif part is not None:
            yield from part.fields()
        elif name:
            yield name


def _value(field: str, facts: Facts) -> Any:
    value, _name = _FORMATTER.get_field(field, (), facts)
    return value
