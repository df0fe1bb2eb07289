"""The one place that touches what Streamlit keeps private."""

from __future__ import annotations

from streamlit.runtime.pages_manager import PagesManager


def pages_come_from_navigation_only() -> None:
    """Tell Streamlit that `pages/` holds pages of `st.navigation`, before the first visitor comes.

    Until some session has run `st.navigation`, Streamlit takes a folder of that name for its older kind of pages and
    would answer a first deep link by running the page's file alone, without `app.py` around it.
    """
    PagesManager.uses_pages_directory = False
