"""Rules for values in the query string, and the correction of those of bound widgets (`bind="query-params"`).

Streamlit writes a bound widget's value into the URL and reads it back, but drops what is out of range without a
message, and some values (`inf`) it cannot read at all. So a page calls `correct_url` before its first widget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import streamlit as st

from engine.i18n import _
from views.html_parts import notice

Value = int | float | str

LONGEST_QUOTE = 40
_NOTES = "url_corrections"


class Rule(Protocol):
    """Which values one name of the query string may have."""

    @property
    def key(self) -> str:
        """The name in the query string."""
        ...

    def correct(self, raw: str) -> tuple[Value, str] | None:
        """The value to use instead, and a sentence that says so; None when `raw` is allowed."""
        ...


@dataclass(frozen=True)
class NumberRule:
    """A number from `low` to `high`; an integer when `low` is one."""

    key: str
    name: str
    low: float
    high: float
    default: float

    def correct(self, raw: str) -> tuple[Value, str] | None:
        """See Rule."""
        value = _finite(raw)
        if value is None:
            return self.default, _("{name}: {raw} in the address is not a number, so it was set to {default}.").format(
                name=_(self.name), raw=_quoted(raw), default=self.default
            )
        near = min(max(value, self.low), self.high)
        if isinstance(self.low, int):
            near = round(near)
        if near == value:
            return None
        sentence = (
            _("{name} must be a whole number from {low} to {high}: {raw} was changed to {near}.")
            if isinstance(self.low, int)
            else _("{name} must be from {low} to {high}: {raw} was changed to {near}.")
        ).format(name=_(self.name), low=self.low, high=self.high, raw=_quoted(raw), near=near)
        return near, sentence


@dataclass(frozen=True)
class ChoiceRule:
    """One of `options`; anything else becomes the first of them.

    formerly: names that options had in addresses of earlier versions -> those of today. No sentence is said of them.
    """

    key: str
    name: str
    options: Sequence[str]
    formerly: Mapping[str, str] = field(default_factory=dict)

    def correct(self, raw: str) -> tuple[Value, str] | None:
        """See Rule."""
        if raw in self.options:
            return None
        if raw in self.formerly:
            return self.formerly[raw], ""
        default = self.options[0]
        return default, _("{name}: {raw} in the address is not one of the choices, so it was set to {default}.").format(
            name=_(self.name), raw=_quoted(raw), default=_(default)
        )


@dataclass(frozen=True)
class TextRule:
    """Text of at most `longest` characters."""

    key: str
    name: str
    longest: int

    def correct(self, raw: str) -> tuple[Value, str] | None:
        """See Rule."""
        if len(raw) <= self.longest:
            return None
        return raw[: self.longest], _(
            "{name}: the text had {count} characters; the limit is {longest}, so the rest was cut off."
        ).format(name=_(self.name), count=len(raw), longest=self.longest)


def correct_url(rules: Iterable[Rule]) -> None:
    """Write corrected values into the URL and rerun the page with them. Call before the first widget."""
    corrections = [
        (rule.key, correction)
        for rule in rules
        if rule.key not in st.session_state and rule.key in st.query_params
        if (correction := rule.correct(st.query_params[rule.key])) is not None
    ]
    if corrections:
        for key, (value, _sentence) in corrections:
            st.query_params[key] = str(value)
        st.session_state[_NOTES] = dict(corrections)
        st.rerun()


def correct_typed(rule: Rule) -> None:
    """For callbacks: correct what was typed or pasted into the widget `rule.key`; `draw_note` says so."""
    correction = rule.correct(str(st.session_state[rule.key]))
    if correction is not None:
        st.session_state[rule.key] = correction[0]
        st.session_state[_NOTES] = {**st.session_state.get(_NOTES, {}), rule.key: correction}


def draw_note(key: str) -> None:
    """Draw the correction of one value, as long as the corrected value stays."""
    value, sentence = st.session_state.get(_NOTES, {}).get(key, (None, ""))
    if sentence and st.session_state.get(key) == value:
        st.html(notice(sentence))


def draw_notes(rules: Iterable[Rule], *, but: str = "") -> None:
    """The same for several values. `but`: the key of one whose note stands beside its widget (`text_box`)."""
    for rule in rules:
        if rule.key != but:
            draw_note(rule.key)


def _finite(raw: str) -> float | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _quoted(raw: str) -> str:
    return repr(raw if len(raw) <= LONGEST_QUOTE else raw[:LONGEST_QUOTE] + "…")
