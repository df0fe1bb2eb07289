"""Presenting: any page with a picture as picture, one sentence and slider. The browser does it (assets/present/)."""

from __future__ import annotations

from typing import Any

import streamlit as st

from course.lesson import CoursePage
from course.pages import COURSE
from engine.i18n import _
from views.browser.assets import read_assets
from views.navigation import navigation_name

_PRESENT = st.components.v2.component(
    "present",
    html=read_assets("present/present.html"),
    css=read_assets("present/present.css"),
    js=read_assets("present/present.js"),
)
WALK = tuple(page for page in COURSE if page.has_picture and page.section != "tools")
"""The pages that a presenter walks through, in reading order."""


def draw_present(page: CoursePage) -> None:
    """The button that begins it, and while it lasts those that turn the page and end it."""
    before, after = _beside(page)
    data = {
        "has_picture": page.has_picture,
        "is_live": page.is_live,
        "title": navigation_name(page),
        "previous": before and _place(before, _("Previous: {name}")),
        "next": after and _place(after, _("Next: {name}")),
        "words": {
            "enter": _("Present (P)"),
            "leave": _("End presenting (Esc)"),
            "strip": _("Presenting"),
        },
    }
    _PRESENT(key="present", data=data, height=0)


def _beside(page: CoursePage) -> tuple[CoursePage | None, CoursePage | None]:
    if page not in WALK:
        return None, None
    at = WALK.index(page)
    return (WALK[at - 1] if at else None, WALK[at + 1] if at + 1 < len(WALK) else None)


def _place(page: CoursePage, label: str) -> dict[str, Any]:
    return {"path": page.url_path or "", "label": label.format(name=navigation_name(page))}
