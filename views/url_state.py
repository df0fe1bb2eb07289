"""Values of a lesson's widgets in the query string, remembered by the tab and brought within range.

    slots = get_url_value(LESSON, NumberRule("slots", "Reservation", 1, 64, 16), 16)     before the widget with that key
    st.number_input("Reservation", 1, 64, key=url_value_key(LESSON, "slots"))

`?slots=` in the URL sets a value. Without it, the tab's last value is used, also after other pages. A URL value that is
out of range is brought within it, and `draw_corrections` says so. When another control changes the range, the value
follows without a message: the reader has not asked for anything impossible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import streamlit as st
from streamlit.errors import StreamlitAPIException

from views.html_parts import notice
from views.server.streamlit_internals import current_page_hash, is_history_navigation, uninterrupted
from views.url_values import Rule

RETRY_SECONDS = 0.3
MAX_TEXTS = 8
MAX_URL_CHARS = 2_000
"""Servers and messengers refuse a longer URL, so a text beyond it is kept in this tab alone."""
_STORE, _PAGE = "url_state", "url_state_page"
_UNWRITTEN, _FIRST_RUN = "url_state_unwritten", "first run"
Value = TypeVar("Value", int, str)


@dataclass
class UrlValue:
    """One value of one lesson in this tab.

    correction: the sentence that says how the URL's value was corrected; `corrected_by`: the rule that did it.
    texts: the value's spelling in the URL: what the browser opened this page with, then what it was told to show since,
    the latest at the end. A browser that requests a run may not have received the latest ones yet.
    """

    value: int | str
    correction: str = ""
    corrected_by: Rule | None = None
    texts: list[str] = field(default_factory=list)
    is_drawn_beside_widget: bool = False


def url_value_key(lesson: str, name: str) -> str:
    """The key of a lesson's value in `st.session_state`, which is the key of its widget."""
    return f"{lesson}_{name}"


@uninterrupted()
def get_url_value(lesson: str, rule: Rule, default: Value) -> Value:
    """The value of `rule.key` now. Also sets it in `st.session_state` under `url_value_key`, for the widget."""
    _forget_texts_of_other_pages()
    key, raw = url_value_key(lesson, rule.key), st.query_params.get(rule.key)
    entry = _store().setdefault(key, UrlValue(default))
    was_typed = False
    if raw is not None and _was_changed_by_reader(entry, raw):
        _take(entry, key, rule, raw, default)
    elif key not in st.session_state:
        st.session_state[key] = entry.value
    elif st.session_state[key] != entry.value:
        entry.value, entry.correction, was_typed = st.session_state[key], "", True
    if entry.corrected_by not in (None, rule):  # another control has changed the range
        entry.correction, entry.corrected_by = "", None
    if rule.correct(str(entry.value)) is not None:
        _take(entry, key, rule, str(entry.value), default)
        if not was_typed:  # the range moved under the value: the reader asked for nothing that cannot be
            entry.correction = ""
    _write(entry, rule.key, raw, default)
    return type(default)(entry.value)


def set_url_values(lesson: str, **values: int | str) -> None:
    """For callbacks: set values of the lesson's widgets."""
    for name, value in values.items():
        st.session_state[url_value_key(lesson, name)] = value


def clear_url_values() -> None:
    """Forget what the tab remembers of every lesson: each value is then the URL's, or its default."""
    for key in _store():
        st.session_state.pop(key, None)
    _store().clear()


def draw_correction(lesson: str, name: str) -> None:
    """Draw the correction of one value beside its widget; `draw_corrections` does not draw it again."""
    entry = _store()[url_value_key(lesson, name)]
    entry.is_drawn_beside_widget = True
    if entry.correction:
        st.html(notice(entry.correction))


def draw_corrections(lesson: str) -> None:
    """Draw the corrections of a lesson's values, as long as the values stay."""
    for key, entry in _store().items():
        if key.startswith(f"{lesson}_") and entry.correction and not entry.is_drawn_beside_widget:
            st.html(notice(entry.correction))


def flush_url() -> None:
    """Call at the end of a page: run it once more if the URL could not be written in this run."""
    if _UNWRITTEN in st.session_state:
        _run_once_more()


@st.fragment(run_every=RETRY_SECONDS)
def _run_once_more() -> None:
    """Streamlit runs this fragment with the page, and again after RETRY_SECONDS."""
    if st.session_state.get(_UNWRITTEN) == _FIRST_RUN:
        st.session_state[_UNWRITTEN] = ""
    elif st.session_state.pop(_UNWRITTEN, None) is not None:
        st.rerun()


def _take(entry: UrlValue, key: str, rule: Rule, raw: str, default: int | str) -> None:
    """Take the URL's text as the value, corrected where the rule says so."""
    value, entry.correction = rule.correct(raw) or (raw, "")
    entry.corrected_by = rule if entry.correction else None
    entry.value = int(float(value)) if isinstance(default, int) else str(value)
    st.session_state[key] = entry.value


def _forget_texts_of_other_pages() -> None:
    """What the browser was told to show on another page is no longer on its way."""
    if st.session_state.get(_PAGE) != current_page_hash():
        st.session_state[_PAGE] = current_page_hash()
        for entry in _store().values():
            entry.texts.clear()


def _was_changed_by_reader(entry: UrlValue, raw: str) -> bool:
    """Whether the reader changed the URL. A text that the browser was told to replace does not count."""
    if raw in entry.texts and not is_history_navigation():
        return False
    was_changed = entry.texts[-1:] != [raw]
    entry.texts = [raw]
    return was_changed


def _write(entry: UrlValue, name: str, raw: str | None, default: int | str) -> None:
    """Write the value into the URL; a default is left out, unless another text is on its way to the browser."""
    text, last_told = str(entry.value), entry.texts[-1:]
    if len(text) > MAX_URL_CHARS:
        if raw is not None:
            _change_url(lambda: st.query_params.pop(name))
        return
    is_shown = raw == text or (raw is None and entry.value == default)
    if is_shown and last_told in ([], [text]):
        return
    if last_told != [text]:
        entry.texts = [*entry.texts[1 - MAX_TEXTS :], text]
    _change_url(lambda: st.query_params.update({name: text}))


def _change_url(change: Callable[[], object]) -> None:
    try:
        change()
    except StreamlitAPIException:  # a bound widget of the previous page owns the name until this run ends
        st.session_state[_UNWRITTEN] = _FIRST_RUN


def _store() -> dict[str, UrlValue]:
    store: dict[str, UrlValue] = st.session_state.setdefault(_STORE, {})
    return store
