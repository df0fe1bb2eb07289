"""What a map reports to Python is heard once: not never, and not twice.

    _MAP(key=key, data={..., "heard": heard(key)}, on_position_change=partial(hear, key, "position", act))

The browser numbers its reports and says a position again until the page names it as heard
(assets/memory_map/js/57_reports.js): one may be lost on a bad network, or reach a session that has not drawn the map
yet and so has no callback for it. Streamlit for its part may bring an old report a second time, after a step through
the browser's history or to a new session: a report says which session it was meant for, and that session knows the
number of the last one it heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from views.telling import session_name

_HEARD = "map_reports_heard"


def heard(key: str) -> dict[str, Any]:
    """For the browser: the name of this session, and the number of the last position it heard of this map."""
    return {"session": session_name(), "position": _numbers().get((key, "position"))}


def hear(key: str, name: str, act: Callable[[], None]) -> None:
    """A callback: act on the report `name` of the map `key`, unless it was heard before or was not meant for us."""
    report = getattr(st.session_state[key], name)
    if report is None:  # nothing is chosen any more
        act()
    elif isinstance(report, Mapping) and report.get("session") == session_name() and _is_later(key, name, report):
        _numbers()[key, name] = report["seq"]
        act()


def _is_later(key: str, name: str, report: Mapping[str, Any]) -> bool:
    number = report.get("seq")
    return isinstance(number, int | float) and number > _numbers().get((key, name), 0)


def _numbers() -> dict[tuple[str, str], int]:
    """By key of the map and name of the report. Numbers grow over all maps of a browser's page."""
    numbers: dict[tuple[str, str], int] = st.session_state.setdefault(_HEARD, {})
    return numbers
