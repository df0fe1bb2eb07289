"""A tab whose connection was lost asks for its page as soon as it is there again.

A new server, or a session that was forgotten, would else show nothing until somebody clicks, and that click would be
lost: what it was made on is not there yet.
"""

from __future__ import annotations

from views.telling import component_that_tells, heard, no_callback, session_name

_WAKE = component_that_tells("wake")
_KEY = "wake"


def wake_after_loss() -> None:
    """Draw at the end of a page, outside of fragments: a session that begins knows no fragment."""
    data = {"writer": session_name(), "heard": heard(_KEY, "told")}
    _WAKE(key=_KEY, data=data, height=0, default={"told": None}, on_told_change=no_callback)
