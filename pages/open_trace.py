"""A trace file back on a page: your own, or somebody else's."""

from __future__ import annotations

import streamlit as st

from views.course import OPEN_TRACE
from views.trace_page import choose_file, draw_opened, opened_trace

st.title(OPEN_TRACE.title)
st.markdown(
    "A trace holds everything that happened to a memory, event by event. "
    "**Take it away** on the live page writes one, `engine.trace.to_json()` too. Whoever has the file sees the same."
)
file = choose_file()
if file is not None and (opened := opened_trace(file)) is not None:
    draw_opened(opened)
