"""Filling templates in another language."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

from engine.said import Teller
from views.words.catalogue import Catalogue


class Language(Teller):
    """Says what the catalogue says. Fields are the English template's; where they stand is the translation's choice."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def words(self, english: str) -> str:
        return self.catalogue.words.get(english) or english

    def counted(self, count: int, noun: str) -> str:
        """A count in the form it takes; forms come from the field itself (`{count:Platz|Plätze}`) or by noun."""
        forms = (noun if "|" in noun else self.words(forms_key(noun))).split("|")
        return f"{count:,} {forms[min(self.catalogue.form_of(count), len(forms) - 1)]}"

    @staticmethod
    def is_noun(format_spec: str) -> bool:
        return "|" in format_spec or Teller.is_noun(format_spec)


def forms_key(noun: str) -> str:
    """Under what a catalogue keeps the forms of an English noun: `slot|slots`."""
    return f"{noun}|{noun}s"


def nouns_of(template: str) -> list[str]:
    """What a template counts in words: `["slot"]`."""
    return [spec for spec in _fields(template).values() if Teller.is_noun(spec)]


def faults(words: Mapping[str, str]) -> dict[str, str]:
    """By English text: what is wrong with its translation, in one sentence."""
    return {english: fault for english, other in words.items() if (fault := _fault(english, other))}


def _fault(english: str, other: str) -> str:
    try:
        known, used = _fields(english), _fields(other)
    except ValueError:
        return f"The braces of {other!r} do not pair up."
    if unknown := sorted(set(used) - set(known)):
        return f"{other!r} has a field that the English text has not: {', '.join(unknown)}."
    if nouns := [spec for spec in used.values() if Teller.is_noun(spec) and spec not in known.values()]:
        return f"{other!r} counts in a word without its forms: {', '.join(nouns)}; write them as one|many."
    return ""


def _fields(template: str) -> dict[str, str]:
    """The fields of a template and how each is shown: `{"waste.free": "slot"}`."""
    return {name: spec or "" for _words, name, spec, _how in Formatter().parse(template) if name is not None}
