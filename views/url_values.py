"""Values that come with the address: brought within range before a widget takes them, and said so.

Streamlit puts a bound widget's value into the address and reads it back, but drops what is out of range without a
word, and some values (`inf`) it cannot read at all. So a page calls `correct_address` before its first widget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import streamlit as st

from engine.said import said
from views.html_parts import notice

Value = int | float | str

LONGEST_QUOTE = 40
_NOTES = "notes_on_the_address"


class Rule(Protocol):
    """What the value of one key may be."""

    @property
    def key(self) -> str: ...

    def correct(self, raw: str) -> tuple[Value, str] | None:
        """The value to take instead, and a sentence that says so; None when `raw` can stay."""
        ...


@dataclass(frozen=True)
class NumberRule:
    """A number from `low` to `high`; a whole one when they are whole."""

    key: str
    name: str
    low: float
    high: float
    default: float

    def correct(self, raw: str) -> tuple[Value, str] | None:
        value = _finite(raw)
        if value is None:
            return self.default, said(
                "{name}: {raw} in the address is not a number, so it is {default}.",
                name=said(self.name), raw=_quoted(raw), default=self.default,
            )  # fmt: skip
        near = min(max(value, self.low), self.high)
        if isinstance(self.low, int):
            near = round(near)
        if near == value:
            return None
        sentence = said(
            "{name} is a whole number from {low} to {high}: {raw} became {near}."
            if isinstance(self.low, int)
            else "{name} goes from {low} to {high}: {raw} became {near}.",
            name=said(self.name), low=self.low, high=self.high, raw=_quoted(raw), near=near,
        )  # fmt: skip
        return near, sentence


@dataclass(frozen=True)
class ChoiceRule:
    """One of `options`, else the first of them."""

    key: str
    name: str
    options: Sequence[str]

    def correct(self, raw: str) -> tuple[Value, str] | None:
        if raw in self.options:
            return None
        default = self.options[0]
        return default, said(
            "{name}: {raw} in the address is not known here, so it is {default}.",
            name=said(self.name), raw=_quoted(raw), default=said(default),
        )  # fmt: skip


@dataclass(frozen=True)
class TextRule:
    """Text of at most `longest` characters."""

    key: str
    name: str
    longest: int

    def correct(self, raw: str) -> tuple[Value, str] | None:
        if len(raw) <= self.longest:
            return None
        return raw[: self.longest], said(
            "{name}: the address held {count} characters; {longest} are kept.",
            name=said(self.name), count=len(raw), longest=self.longest,
        )  # fmt: skip


def correct_address(rules: Iterable[Rule]) -> None:
    """Write corrected values into the address and start the page again with them. Call before the first widget."""
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


def draw_notes() -> None:
    """Say what was corrected, as long as the corrected value stands."""
    for key, (value, sentence) in st.session_state.get(_NOTES, {}).items():
        if st.session_state.get(key) == value:
            st.html(notice(sentence))


def _finite(raw: str) -> float | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _quoted(raw: str) -> str:
    return repr(raw if len(raw) <= LONGEST_QUOTE else raw[:LONGEST_QUOTE] + "…")
