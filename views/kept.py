"""The values of a lesson: in its address, in this tab, and within range.

    slots = kept(LESSON, NumberRule("slots", "Reservation", 1, 64, 16), 16)      before the widget with that key
    st.number_input("Reservation", 1, 64, key=kept_key(LESSON, "slots"))

An address names a value by `?slots=`. Without it, the tab remembers what it last was, also over other pages. A value
out of range is brought within it, and `draw_corrections` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import streamlit as st
from streamlit.errors import StreamlitAPIException

from views.html_parts import notice
from views.streamlit_private import came_by_history, page_of_run, uninterrupted
from views.url_values import Rule

SECONDS_UNTIL_NAMES_ARE_FREE = 0.3
MOST_TEXTS = 8
_STORE, _PAGE = "kept_values", "kept_values_page"
_CLAIMED, _FIRST_RUN = "kept_names_claimed", "first run"
Value = TypeVar("Value", int, str)


@dataclass
class Kept:
    """One value of one lesson in this tab.

    texts: how the address spells it: what the browser came to this page with, then what it was asked to show since,
    the last at the end. A browser that asks for a run may not have heard of the last ones yet.
    """

    value: int | str
    correction: str = ""
    texts: list[str] = field(default_factory=list)


def kept_key(lesson: str, name: str) -> str:
    """The session key, which is the widget's key, of a lesson's value."""
    return f"{lesson}_{name}"


@uninterrupted()
def kept(lesson: str, rule: Rule, default: Value) -> Value:
    """The value of `rule.key` now. It is also under its key in the session, for the widget to take."""
    _notice_page()
    key, raw = kept_key(lesson, rule.key), st.query_params.get(rule.key)
    entry = _store().setdefault(key, Kept(default))
    if raw is not None and _is_news(entry, raw):
        _take(entry, key, rule, raw, default)
    elif key not in st.session_state:
        st.session_state[key] = entry.value
    elif st.session_state[key] != entry.value:
        entry.value, entry.correction = st.session_state[key], ""
    if rule.correct(str(entry.value)) is not None:  # another control has moved the range
        _take(entry, key, rule, str(entry.value), default)
    _write(entry, rule.key, raw, default)
    return type(default)(entry.value)


def set_kept(lesson: str, **values: int | str) -> None:
    """For callbacks: give values to the lesson's controls."""
    for name, value in values.items():
        st.session_state[kept_key(lesson, name)] = value


def forget_kept() -> None:
    """Every value of every lesson is what the address says, or its default: nothing is remembered from before."""
    for key in _store():
        st.session_state.pop(key, None)
    _store().clear()


def draw_corrections(lesson: str) -> None:
    """Say what was brought within range, as long as the value stands."""
    for key, entry in _store().items():
        if key.startswith(f"{lesson}_") and entry.correction:
            st.html(notice(entry.correction))


def settle_address() -> None:
    """Call at the end of a page: names that could not be written yet are written in a run of their own."""
    if _CLAIMED in st.session_state:
        _run_once_more()


@st.fragment(run_every=SECONDS_UNTIL_NAMES_ARE_FREE)
def _run_once_more() -> None:
    """Streamlit runs this with the page, and then by the clock."""
    if st.session_state.get(_CLAIMED) == _FIRST_RUN:
        st.session_state[_CLAIMED] = ""
    elif st.session_state.pop(_CLAIMED, None) is not None:
        st.rerun()


def _take(entry: Kept, key: str, rule: Rule, raw: str, default: int | str) -> None:
    """The text as a value, corrected where the rule says so."""
    value, entry.correction = rule.correct(raw) or (raw, "")
    entry.value = int(float(value)) if isinstance(default, int) else str(value)
    st.session_state[key] = entry.value


def _notice_page() -> None:
    """What the browser was asked to show on another page is no longer on its way."""
    if st.session_state.get(_PAGE) != page_of_run():
        st.session_state[_PAGE] = page_of_run()
        for entry in _store().values():
            entry.texts.clear()


def _is_news(entry: Kept, raw: str) -> bool:
    """Whether the reader changed the address. One that the browser has not yet replaced as we asked is no news."""
    if raw in entry.texts and not came_by_history():
        return False
    is_news = entry.texts[-1:] != [raw]
    entry.texts = [raw]
    return is_news


def _write(entry: Kept, name: str, raw: str | None, default: int | str) -> None:
    """Spell the value in the address; a default needs no words there, unless other ones are on their way."""
    text, was_asked = str(entry.value), entry.texts[-1:]
    is_said = raw == text or (raw is None and entry.value == default)
    if is_said and was_asked in ([], [text]):
        return
    if was_asked != [text]:
        entry.texts = [*entry.texts[1 - MOST_TEXTS :], text]
    try:
        st.query_params[name] = text
    except StreamlitAPIException:  # a widget of the page before this one holds the name until this run ends
        st.session_state[_CLAIMED] = _FIRST_RUN


def _store() -> dict[str, Kept]:
    store: dict[str, Kept] = st.session_state.setdefault(_STORE, {})
    return store
