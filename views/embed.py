"""One picture of the course without the page around it, for a frame in another site: `?figure=growth`.

Which sites may frame it is a setting of the server (views/server/security.py), none by default.
"""

from __future__ import annotations

import streamlit as st

from course.lesson import CoursePage
from course.pages import COURSE

FIGURE = "figure"
STYLE = """<style>
:is([data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stMain"] h1, .st-key-lesson_head,
  .st-key-lesson_controls, .st-key-lesson_notes, .st-key-lesson_details, .st-key-present, .st-key-live_setup,
  .st-key-live_requests, .st-key-live_notes, .st-key-live_tools) { display: none !important; }
[data-testid="stMainBlockContainer"] { padding: 0.3rem !important; max-width: none !important; }
:is(.st-key-lesson, .st-key-live) { --map-top: 0px; --map-bottom: 8px; display: block !important; }
.st-key-live { --map-bottom: 64px; } /* its buttons */
</style>"""


def asked_figure() -> CoursePage | None:
    """The page whose picture the address asks for; None for a whole page, also when there is no such picture."""
    name = st.query_params.get(FIGURE)
    return next((page for page in COURSE if page.url_path == name and page.has_picture), None) if name else None
