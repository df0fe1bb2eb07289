"""What a tab's browser keeps for the server: values in the URL without history entries, and a rerun after reconnect.

A report of a component can be lost: a script run that is under way swallows it, or the server has restarted meanwhile.
So both components repeat theirs until a run acknowledges it (assets/browser_state/retry_until_acknowledged.js).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import streamlit as st

from views.browser.assets import read_assets, with_connection

_SESSION_ID = "session_id"
_URL, _URL_WAS_READ, _RECONNECT = "url_values", "url_was_read", "reconnect"


def _component(name: str) -> Any:
    script = read_assets("browser_state/retry_until_acknowledged.js", f"browser_state/{name}.js")
    return st.components.v2.component(name, js=with_connection(script))


_URL_COMPONENT, _RECONNECT_COMPONENT = _component("url_values"), _component("reconnect")


def session_id() -> str:
    """A random name of this Streamlit session, which tells it from every other one."""
    return str(st.session_state.setdefault(_SESSION_ID, secrets.token_hex(8)))


def sync_url(values: Mapping[str, str | None]) -> dict[str, str] | None:
    """Write each value into the query string under its name, None to remove it. Other names stay.

    Writing `st.query_params` would add an entry to the browser's history each time, and Back would walk through them.
    Returns the values that the browser already had when this session began under an open tab: once, else None.
    """
    session = session_id()
    data = {
        "values": dict(values),
        "session": session,
        "acknowledged": _time_received(_URL, "found"),
        "others": st.query_params.to_dict(),  # a change of these makes the component write again
    }
    _URL_COMPONENT(key=_URL, data=data, height=0, default={"found": None}, on_found_change=_ignore_change)
    found = st.session_state[_URL].found
    if not isinstance(found, dict) or found.get("to") != session or _URL_WAS_READ in st.session_state:
        return None
    st.session_state[_URL_WAS_READ] = True
    return {name: found[name] for name in values if isinstance(found.get(name), str)}


def rerun_after_reconnect() -> None:
    """Make a tab whose connection was lost ask for its page as soon as it is connected again.

    After a restart of the server, or when the session was dropped, the tab would show the old page until somebody
    clicks, and that click would be lost: the widget is unknown to the new session. Call at the end of a page, outside
    of fragments: a new session knows no fragment.
    """
    data = {"session": session_id(), "acknowledged": _time_received(_RECONNECT, "sent")}
    _RECONNECT_COMPONENT(key=_RECONNECT, data=data, height=0, default={"sent": None}, on_sent_change=_ignore_change)


def _time_received(key: str, name: str) -> float | None:
    """When the component sent the report that has arrived, by the browser's clock."""
    report = getattr(st.session_state[key], name) if key in st.session_state else None
    return report.get("sent") if isinstance(report, dict) else None


def _ignore_change() -> None:
    """Streamlit requires a callback for component state that has a default."""
