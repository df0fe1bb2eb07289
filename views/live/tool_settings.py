"""What the lab's tools are set to: kept while the page is open, and in its address while the tool is shown.

    slot = choose_number("Slot", "slot", count)       a whole number from 0, below a count that the engine knows

The address says `?slot=5`. What is out of range is brought within it, and `draw_tool_notes` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import streamlit as st

from engine.i18n import _
from views.html_parts import notice
from views.server.streamlit_internals import uninterrupted
from views.url_values import ChoiceRule, NumberRule, Rule

NAMES = ("slot", "layer", "kv_head", "sequence", "token", "head", "beat")
"""What an address may say of a tool; each is the key of its widget, too."""
_CHOICES = "lab_choices"
Value = TypeVar("Value", int, str)


@dataclass
class LabChoices:
    """`asked`: texts of the address that no widget has taken yet. `values`: what each widget was last. `shown`: those
    of the tool that is drawn. `corrections`: a value that had to be changed, with the sentence that says so."""

    asked: dict[str, str] = field(default_factory=dict)
    values: dict[str, int | str] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    corrections: dict[str, tuple[int | str, str]] = field(default_factory=dict)


def take_from_address(address: Mapping[str, str]) -> None:
    """What a tab came with, for the widgets to take once the engine can tell what is within range."""
    choices = st.session_state[_CHOICES] = LabChoices({name: address[name] for name in NAMES if name in address})
    for name in choices.asked:
        st.session_state.pop(name, None)


def begin_tool() -> None:
    """Call before a tool is drawn: what the one before it showed leaves the address."""
    _choices().shown.clear()


def waits_to_be_taken() -> bool:
    """Whether the address asked for something that no tool has taken yet."""
    return bool(_choices().asked)


def in_address() -> dict[str, str | None]:
    """Every name with its value in the tool that is drawn. What was asked for and not yet taken stays as it is."""
    choices = _choices()
    values = {name: str(choices.values[name]) for name in choices.shown if name in NAMES}
    return {**dict.fromkeys(NAMES), **choices.asked, **values}


def draw_tool_notes() -> None:
    """Say what was brought within range, as long as the value stands."""
    choices = _choices()
    for name in choices.shown:
        value, sentence = choices.corrections.get(name, (None, ""))
        if sentence and value == choices.values[name]:
            st.html(notice(sentence))


def choose_number(label: str, key: str, count: int, default: int = 0) -> int:
    """One of 0 .. `count - 1`, `default` at first. A value that has fallen out of range is brought back into it."""
    _settle(NumberRule(key, label, 0, count - 1, default), default)
    keep_within(key, 0, count - 1)
    label = _("{label} (0 to {count})").format(label=label, count=count - 1)
    return _chosen(key, int(st.number_input(label, 0, max(count - 1, 1), key=key, disabled=count < 2)))


def choose_one(label: str, key: str, options: Sequence[str], default: str) -> str:
    """One of the options, `default` at first and when the one chosen is gone."""
    _settle(ChoiceRule(key, label, (default, *options)), default)
    if st.session_state[key] not in options:
        st.session_state[key] = default
    return _chosen(key, str(st.selectbox(label, options, key=key)))


def slide(label: str, rule: NumberRule) -> int:
    """A whole number to drag."""
    low, high = int(rule.low), int(rule.high)
    _settle(rule, int(rule.default))
    keep_within(rule.key, low, high)
    return _chosen(rule.key, int(st.slider(label, low, high, key=rule.key)))


def keep_within(key: str, low: int, high: int) -> None:
    """Before the widget of this key: what the reader had chosen, brought within its new range."""
    st.session_state[key] = min(max(int(st.session_state.get(key, low)), low), high)


@uninterrupted()
def _settle(rule: Rule, default: Value) -> None:
    """Before the widget of this key: what a click or the reader chose, else the address, else what it was last."""
    choices = _choices()
    raw = choices.asked.pop(rule.key, None)
    if rule.key in st.session_state:
        return
    if raw is None:
        st.session_state[rule.key] = choices.values.get(rule.key, default)
        return
    value, sentence = rule.correct(raw) or (raw, "")
    st.session_state[rule.key] = int(float(value)) if isinstance(default, int) else str(value)
    choices.corrections[rule.key] = st.session_state[rule.key], sentence


def _chosen(key: str, value: Value) -> Value:
    choices = _choices()
    choices.values[key] = value
    choices.shown.append(key)
    return value


def _choices() -> LabChoices:
    choices: LabChoices = st.session_state.setdefault(_CHOICES, LabChoices())
    return choices
