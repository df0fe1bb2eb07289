"""Sentences and figures whose every number is a field of what was counted.

    tell("{waste.num_empty:slot} of {waste.num_held} stand empty.", facts)     9 slots of 16 stand empty.

A template holds words only; the numbers come from the facts by name. So no page can show a figure of its own making,
and a test can read which field each shown number came from. Other languages have templates of their own: views/words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.said import ENGLISH
from views.words import filled, translated

Facts = Mapping[str, Any]
"""What templates may name: records such as `Waste` and `Usage`, and single counts."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure of a frame: `name` for readers, `template` for the number."""

    name: str
    template: str

    @property
    def key(self) -> str:
        """The field it shows, which is how tests find it: `waste.num_empty`."""
        return next(field_names(self.template))

    def told(self, facts: Facts) -> list[str]:
        """`[key, name, text]`, as the memory map draws it."""
        return [self.key, translated(self.name), tell(self.template, facts)]


def tell(template: str, facts: Facts) -> str:
    """The template in the server's words, filled in. Raises KeyError or AttributeError for a field nobody counted."""
    return filled(template, facts)


def told_figures(figures: Iterable[Figure], facts: Facts) -> list[tuple[str, str, str]]:
    """All figures, for `html_parts.figures`."""
    return [(figure.key, translated(figure.name), tell(figure.template, facts)) for figure in figures]


def field_names(template: str) -> Iterator[str]:
    """The fields a template names, in order."""
    return (name for _words, name, _spec, _conversion in ENGLISH.parse(template) if name is not None)


def words_of_template(template: str) -> str:
    """The template without its fields: what is written, not counted."""
    return "".join(words for words, *_rest in ENGLISH.parse(template))
