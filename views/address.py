"""Values that the address carries besides those of widgets: written by the browser, read when a tab comes.

Writing `st.query_params` would make an entry in the browser's history each time, and Back would walk through them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

import streamlit as st

SCRIPTS = Path(__file__).resolve().parent.parent / "assets" / "address"
HOLD = (SCRIPTS / "hold.js").read_text(encoding="utf-8")
_ADDRESS = st.components.v2.component("address", js=HOLD + (SCRIPTS / "address.js").read_text(encoding="utf-8"))
_KEY, _WRITER, _FOUND = "address", "address_writer", "address_found"


def keep_in_address(values: Mapping[str, str | None]) -> dict[str, str] | None:
    """Put each value under its name; None takes the name away. What else the address holds stays.

    Returns what the browser found there before this session, which knows nothing of it, could write: once, else None.
    """
    writer = session_writer()
    data = {"values": dict(values), "writer": writer, "heard": _heard(), "others": st.query_params.to_dict()}
    _ADDRESS(key=_KEY, data=data, height=0, default={"found": None}, on_found_change=_nothing)
    found = st.session_state[_KEY].found
    if not isinstance(found, dict) or found.get("to") != writer or _FOUND in st.session_state:
        return None
    st.session_state[_FOUND] = True
    return {name: found[name] for name in values if isinstance(found.get(name), str)}


def session_writer() -> str:
    """What tells this session from every other one."""
    return str(st.session_state.setdefault(_WRITER, secrets.token_hex(8)))


def _heard() -> float | None:
    """Which telling of the browser has arrived, by its time."""
    told = st.session_state[_KEY].found if _KEY in st.session_state else None
    return told.get("told") if isinstance(told, dict) else None


def _nothing() -> None:
    """Component state needs a callback to have a default."""
