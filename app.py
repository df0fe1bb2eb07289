"""`streamlit run app.py`: the script that every tab runs, and the server's own beginning and end, in one file."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import streamlit as st
from starlette.middleware import Middleware

from views import server
from views.course import ROOM, navigation_pages
from views.door import Door
from views.fault import say_plainly
from views.frames_route import FRAMES_ROUTE
from views.html_parts import STYLE_SHEET
from views.late_imports import import_what_is_heavy_soon
from views.log import write_readable_log
from views.metrics_route import METRICS_ROUTE
from views.room.bar import draw_room_bar
from views.room.lines import ROOM_ROUTES
from views.streamlit_private import (
    keep_unsent_drawings_of_fragments,
    let_callbacks_finish,
    let_no_clock_turn_the_page_back,
    pages_come_from_navigation_only,
)
from views.wake import wake_after_loss

SIDEBAR_PIXELS = 250


@contextlib.asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    pages_come_from_navigation_only()
    keep_unsent_drawings_of_fragments()
    let_callbacks_finish()
    let_no_clock_turn_the_page_back()
    write_readable_log()
    server.start()
    yield
    server.stop()


def main() -> None:
    st.set_page_config(page_icon="📄", layout="wide", initial_sidebar_state=SIDEBAR_PIXELS)
    st.html(STYLE_SHEET)
    page = st.navigation(navigation_pages())
    draw_room_bar(is_room_page=page.url_path == ROOM.url_path)
    try:
        page.run()
        wake_after_loss()
    finally:  # a page may also end by stopping, while it waits for its model
        import_what_is_heavy_soon()


if st.runtime.exists():
    main()
else:
    app = st.App(
        __file__,
        lifespan=lifespan,
        on_script_error=say_plainly,
        routes=[METRICS_ROUTE, FRAMES_ROUTE, *ROOM_ROUTES],
        middleware=[Middleware(Door)],
    )
