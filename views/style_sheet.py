"""The one style sheet of all pages: assets/page/style.css, and the rules made of the course's pages and the theme."""

from __future__ import annotations

from functools import lru_cache
from gettext import NullTranslations

import streamlit as st

from engine.i18n import translations
from views.browser.assets import read_assets
from views.navigation import navigation_rules
from views.progress import progress_rules


def style_sheet() -> str:
    """For `st.html`. Made once in a language."""
    return _style_sheet(translations())


@lru_cache(maxsize=4)
def _style_sheet(_language: NullTranslations) -> str:
    rules = [_page_background(), read_assets("page/style.css"), *navigation_rules(), *progress_rules()]
    return f"<style>{' '.join(rules)}</style>"


def _page_background() -> str:
    """The theme's own colour, for what lies above the page: Streamlit gives it to components alone."""
    light, dark = (st.get_option(f"theme.{base}.backgroundColor") for base in ("light", "dark"))
    return f":root {{ --page-background: light-dark({light}, {dark}); }}"
