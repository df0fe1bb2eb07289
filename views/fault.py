"""A fault in a page: the reader gets one sentence, the server's log the details."""

from __future__ import annotations

import logging

import streamlit as st

from views.html_parts import notice

SENTENCE = "Something went wrong on this page. Reload it to start afresh; the server's log has the details."


def say_plainly(error: Exception) -> bool:
    """For `st.App(on_script_error=...)`: True keeps Streamlit from showing the exception itself."""
    logging.getLogger(__name__).error("a page failed", exc_info=error)
    st.html(notice(SENTENCE, "problem"))
    return True
