"""A tab whose connection was lost asks for its page as soon as it is there again.

A new server, or a session that was forgotten, would else show nothing until somebody clicks, and that click would be
lost: what it was made on is not there yet.
"""

from __future__ import annotations

import streamlit as st

from views.address import HOLD, SCRIPTS, session_writer

_WAKE = st.components.v2.component("wake", js=HOLD + (SCRIPTS / "wake.js").read_text(encoding="utf-8"))
_KEY = "wake"


def wake_after_loss() -> None:
    """Draw at the end of a page, outside of fragments: a session that begins knows no fragment."""
    told = st.session_state[_KEY].told if _KEY in st.session_state else None
    heard = told.get("told") if isinstance(told, dict) else None
    _WAKE(
        key=_KEY, data={"writer": session_writer(), "heard": heard}, height=0, default={"told": None},
        on_told_change=_nothing,
    )  # fmt: skip


def _nothing() -> None:
    """Component state needs a callback to have a default."""
