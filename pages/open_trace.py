"""A trace file back on a page: your own, or somebody else's."""

from __future__ import annotations

import streamlit as st

from course.pages import OPEN_TRACE
from engine.i18n import _
from views.trace.page import choose_file, draw_opened, opened_trace

st.title(_(OPEN_TRACE.title))
st.markdown(
    _(
        "A trace is the event log of a run: everything that happened to its memory, in order. **Download** on "
        "the live page saves one, and so does `engine.trace.to_json()`. Whoever opens the file sees the same "
        "run."
    )
)
file = choose_file()
if file is not None and (opened := opened_trace(file)) is not None:
    draw_opened(opened)
