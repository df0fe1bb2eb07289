"""Values that come with the address: brought within range before a widget takes them, and said so.

Streamlit puts a bound widget's value into the address and reads it back, but drops what is out of range without a
word, and lets values through that only the browser's own control would stop. Call the function of a key before its
widget, and `draw_notes` once at the end of the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from views.html_parts import notice

Value = int | float | str

LONGEST_QUOTE = 40
SECONDS_UNTIL_MOUNTED = 0.3
_NOTES = "address_notes"
_UNSETTLED, _DRAWN, _SETTLED = "address_unsettled", "address_drawn", "address_settled"


def whole_number(key: str, name: str, low: int, high: int, default: int) -> None:
    """`?key=` becomes a whole number from `low` to `high`."""
    raw = _new_value(key)
    if raw is None:
        return
    value = _finite(raw)
    if value is None:
        _replace(key, default, f"{name}: {_quoted(raw)} in the address is not a number, so it is {default}.")
    elif not (low <= value <= high and value == round(value)):
        whole = round(min(max(value, low), high))
        _replace(key, whole, f"{name} is a whole number from {low} to {high}: {_quoted(raw)} became {whole}.")


def number(key: str, name: str, low: float, high: float, default: float) -> None:
    """`?key=` becomes a number from `low` to `high`."""
    raw = _new_value(key)
    if raw is None:
        return
    value = _finite(raw)
    if value is None:
        _replace(key, default, f"{name}: {_quoted(raw)} in the address is not a number, so it is {default}.")
    elif not low <= value <= high:
        near = min(max(value, low), high)
        _replace(key, near, f"{name} goes from {low} to {high}: {_quoted(raw)} became {near}.")


def one_of(key: str, name: str, options: Sequence[str], default: str) -> None:
    """`?key=` becomes one of `options`."""
    raw = _new_value(key)
    if raw is not None and raw not in options:
        _replace(key, default, f"{name}: {_quoted(raw)} in the address is not known here, so it is {default}.")


def text(key: str, name: str, longest: int) -> None:
    """`?key=` is cut to `longest` characters."""
    raw = _new_value(key)
    if raw is not None and len(raw) > longest:
        _replace(key, raw[:longest], f"{name}: the address held {len(raw)} characters; {longest} are kept.")


def draw_notes() -> None:
    """Say what was corrected, as long as the corrected value stands, and write it into the address."""
    notes: dict[str, tuple[Value, str]] = st.session_state.get(_NOTES, {})
    for key, (value, sentence) in notes.items():
        if st.session_state.get(key) == value:
            st.html(notice(sentence))
    if _UNSETTLED in st.session_state:
        _settle()


def _new_value(key: str) -> str | None:
    """The raw value, when this tab has just come to the page with one."""
    if key in st.session_state.get(_SETTLED, {}):
        st.session_state[key] = st.session_state[_SETTLED].pop(key)
    return None if key in st.session_state else st.query_params.get(key)


def _replace(key: str, value: Value, sentence: str) -> None:
    st.session_state[key] = value
    st.session_state.setdefault(_NOTES, {})[key] = (value, sentence)
    st.session_state.setdefault(_UNSETTLED, {})[key] = value


@st.fragment(run_every=SECONDS_UNTIL_MOUNTED)
def _settle() -> None:
    """Set the values once more when the widgets are on the page: only then do they write the address."""
    if st.session_state.get(_DRAWN):
        st.session_state[_DRAWN] = False
        st.session_state[_SETTLED] = st.session_state.pop(_UNSETTLED, {})
        st.rerun()
    st.session_state[_DRAWN] = True


def _finite(raw: str) -> float | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _quoted(raw: str) -> str:
    return repr(raw if len(raw) <= LONGEST_QUOTE else raw[:LONGEST_QUOTE] + "…")
