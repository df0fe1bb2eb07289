"""Values that the address carries besides those of widgets: written by the browser, read when a tab comes.

Writing `st.query_params` would make an entry in the browser's history each time, and Back would walk through them.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from views.telling import component_that_tells, heard, no_callback, session_name

_ADDRESS = component_that_tells("address")
_KEY, _FOUND = "address", "address_found"


def keep_in_address(values: Mapping[str, str | None]) -> dict[str, str] | None:
    """Put each value under its name; None takes the name away. What else the address holds stays.

    Returns what the browser found there before this session, which knows nothing of it, could write: once, else None.
    """
    writer = session_name()
    data = {
        "values": dict(values),
        "writer": writer,
        "heard": heard(_KEY, "found"),
        "others": st.query_params.to_dict(),
    }
    _ADDRESS(key=_KEY, data=data, height=0, default={"found": None}, on_found_change=no_callback)
    found = st.session_state[_KEY].found
    if not isinstance(found, dict) or found.get("to") != writer or _FOUND in st.session_state:
        return None
    st.session_state[_FOUND] = True
    return {name: found[name] for name in values if isinstance(found.get(name), str)}
