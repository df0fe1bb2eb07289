"""Is the machine that serves these pages ready for a workshop? The same checks as `python -m engine.doctor`."""

from __future__ import annotations

import streamlit as st

from views import server
from views.course import READY
from views.doctor import checkup_html

st.title(READY.title)
st.markdown(
    "These checks are about the machine that serves the pages, not the one you look at them with. "
    "They take a few seconds and change nothing."
)
board = server.checkups()
if st.button("Check this machine", key="check"):
    with st.spinner("Checking"):
        board.renew()
if board.latest is not None:
    st.html(checkup_html(board.latest))
st.markdown("On the command line: `python -m engine.doctor`. It asks about the port as well.")
