"""Sentences and figures whose every number is a field of what was counted.

    tell("{waste.num_empty:slot} of {waste.num_held} stand empty.", facts)     9 slots of 16 stand empty.

A template holds words only; the numbers come from the facts by name. So no page can show a figure of its own making,
and a test can read which field each shown number came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from engine.events import plural

Facts = Mapping[str, Any]
"""What templates may name: records such as `Waste` and `Usage`, and single counts."""


class _Teller(Formatter):
    """`{field:slot}` counts things in words ("1 slot", "9 slots"); other specs are Python's own."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, int) and len(format_spec) > 1 and format_spec.isalpha():
            return plural(value, format_spec)
        return str(super().format_field(value, format_spec))


_TELLER = _Teller()


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
        return [self.key, self.name, tell(self.template, facts)]


def tell(template: str, facts: Facts) -> str:
    """The template with its fields filled in. Raises KeyError or AttributeError for a field nobody counted."""
    return _TELLER.vformat(template, (), facts)


def told_figures(figures: Iterable[Figure], facts: Facts) -> list[tuple[str, str, str]]:
    """All figures, for `html_parts.figures`."""
    return [(figure.key, figure.name, tell(figure.template, facts)) for figure in figures]


def field_names(template: str) -> Iterator[str]:
    """The fields a template names, in order."""
    return (name for _words, name, _spec, _conversion in _TELLER.parse(template) if name is not None)


def words_of_template(template: str) -> str:
    """The template without its fields: what is written, not counted."""
    return "".join(words for words, *_rest in _TELLER.parse(template))
