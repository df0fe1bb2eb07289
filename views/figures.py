"""Named figures of a frame: a name for readers, and the field that the number comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from course.messages import Facts, Text, field_names, fill
from engine.i18n import _


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure of a frame: `name` for readers, marked for translation; `text` shows the number."""

    name: str
    text: Text

    @property
    def key(self) -> str:
        """The field it shows, which is how tests find it: `waste.num_empty`."""
        return field_names(self.text)[0]


def figure_rows(figures: Iterable[Figure], facts: Facts) -> list[tuple[str, str, str]]:
    """`(key, name, text)` of each, for the memory map and for `html_parts.figures`."""
    return [(figure.key, _(figure.name), fill(figure.text, facts)) for figure in figures]
