"""The pages in reading order: the navigation and the map of the course are both drawn from this list."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.navigation.page import StreamlitPage


@dataclass(frozen=True)
class CoursePage:
    """`file` is relative to app.py. `url_path` is the page's address; Home has none. `promise`: what a reader gets."""

    file: str
    title: str
    icon: str
    url_path: str | None
    promise: str


HOME = CoursePage("pages/home.py", "Start here", ":material/home:", None, "What this is, and where to begin.")
LIVE_ENGINE = CoursePage(
    "pages/live_engine.py",
    "Live engine",
    ":material/memory:",
    "live_engine",
    "Type a prompt, step a real model token by token, and watch its block table fill.",
)
COURSE = (HOME, LIVE_ENGINE)


def navigation_pages() -> list[StreamlitPage]:
    """For `st.navigation`: a flat list, because its sections are not valid lists for a screen reader."""
    return [
        st.Page(page.file, title=page.title, icon=page.icon, url_path=page.url_path, default=page.url_path is None)
        for page in COURSE
    ]
