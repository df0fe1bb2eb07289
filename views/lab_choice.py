"""A whole number of the lab's tools: from 0, below a count that the engine knows, kept while the page is open."""

from __future__ import annotations

import streamlit as st


def choose_number(label: str, key: str, count: int) -> int:
    """One of 0 .. `count - 1`. A value that has fallen out of range is brought back into it."""
    keep_within(key, 0, count - 1)
    label = f"{label} (0 to {count - 1})"
    return int(st.number_input(label, 0, max(count - 1, 1), key=key, disabled=count < 2))


def keep_within(key: str, low: int, high: int) -> None:
    """Before the widget of this key: what the reader had chosen, brought within its new range."""
    st.session_state[key] = min(max(int(st.session_state.get(key, low)), low), high)
