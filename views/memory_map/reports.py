"""Each report of a map reaches Python once: it is neither lost nor handled twice.

    act_once = partial(on_report, key, "position", act)
    _MAP(key=key, data={..., "acknowledged": acknowledged(key)}, on_position_change=act_once)

The browser numbers its reports and sends a position again until the page acknowledges it
(assets/memory_map/js/57_reports.js): one may be lost on a bad network, or reach a session that has not drawn the map
yet and so has no callback for it. Streamlit for its part may bring an old report a second time, after a step through
the browser's history or to a new session: a report names the session it is meant for, and that session remembers the
number of the last one it handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from views.browser.state import session_id

_HANDLED = "map_reports_handled"


def acknowledged(key: str) -> dict[str, Any]:
    """For the browser: the name of this session, and the number of the last position that it handled of this map."""
    return {"session": session_id(), "position": _numbers().get((key, "position"))}


def on_report(key: str, name: str, act: Callable[[], None]) -> None:
    """A callback: act on the report `name` of the map `key`, unless it was handled before or is for another session."""
    report = getattr(st.session_state[key], name)
    if report is None:  # nothing is chosen any more
        act()
    elif isinstance(report, Mapping) and report.get("session") == session_id() and _is_later(key, name, report):
        _numbers()[key, name] = report["seq"]
        act()


def _is_later(key: str, name: str, report: Mapping[str, Any]) -> bool:
    number = report.get("seq")
    return isinstance(number, int | float) and number > _numbers().get((key, name), 0)


def _numbers() -> dict[tuple[str, str], int]:
    """By key of the map and name of the report. Numbers grow over all maps of a browser's page."""
    numbers: dict[tuple[str, str], int] = st.session_state.setdefault(_HANDLED, {})
    return numbers
