"""What happens when a page raises: the reader sees one sentence, the server's log has the traceback."""

from __future__ import annotations

import logging

import streamlit as st

from engine.i18n import N_, _
from views.html_parts import notice

SENTENCE = N_("Something went wrong on this page. Reload it to start again; the server's log has the details.")


def show_error_sentence(error: Exception) -> bool:
    """For `st.App(on_script_error=...)`: True keeps Streamlit from showing the exception itself."""
    logging.getLogger(__name__).error("page script failed", exc_info=error)
    st.html(notice(_(SENTENCE), "problem"))
    return True
