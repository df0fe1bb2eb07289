"""`streamlit run app.py`: the script that every tab runs, and the server's own beginning and end, in one file."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import streamlit as st

from views import server
from views.html_parts import STYLE_SHEET
from views.streamlit_private import pages_come_from_navigation_only


@contextlib.asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    pages_come_from_navigation_only()
    server.start()
    yield
    server.stop()


def main() -> None:
    st.set_page_config(page_title="PagedAttention, live", page_icon="📄", layout="wide")
    st.html(STYLE_SHEET)
    st.navigation(
        [
            st.Page("pages/home.py", title="Start here", icon=":material/home:", default=True),
            st.Page("pages/live_engine.py", title="Live engine", icon=":material/memory:", url_path="live_engine"),
        ]
    ).run()


if st.runtime.exists():
    main()
else:
    app = st.App(__file__, lifespan=lifespan)
