"""`streamlit run app.py`: the script that every tab runs, and the ASGI app around it with its start and its end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import streamlit as st
from starlette.middleware import Middleware

from course.pages import COURSE, HOME, ROOM
from views.browser.state import rerun_after_reconnect
from views.embed import STYLE as FIGURE_STYLE
from views.embed import asked_figure
from views.error_handler import show_error_sentence
from views.navigation import course_page_of, navigation_pages
from views.predict import listen_to_answers, open_questions_in
from views.present import draw_present
from views.progress import draw_progress, note_answer
from views.room.bar import draw_room_bar
from views.room.predictions import is_in_room, share_prediction
from views.room.rooms import rooms
from views.room.websocket import ROOM_ROUTES
from views.server.base_path import base_path, below_base_path
from views.server.frames_route import FRAMES_ROUTES
from views.server.index_page import UpgradeRequiredMiddleware, page_routes, redirect_to
from views.server.log import configure_logging
from views.server.metrics import METRICS_ROUTE
from views.server.model_registry import default_model, model_registry
from views.server.process import import_heavy_modules_soon, shorten_switch_interval
from views.server.proxies import ForwardedHostMiddleware, keep_uvicorn_from_reading_forwarded_headers
from views.server.security import SecurityMiddleware
from views.server.sessions import session_registry
from views.server.streamlit_internals import apply_patches
from views.style_sheet import style_sheet

SIDEBAR_PIXELS = 250


@contextlib.asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Before the first request and after the last one of this server."""
    configure_logging()
    apply_patches()
    keep_uvicorn_from_reading_forwarded_headers()
    shorten_switch_interval()
    model_registry().request(default_model())  # starts the load before the first visitor comes
    yield
    rooms().close_all()
    session_registry().close_all()


def main() -> None:
    """One run of a tab's script: the frame around the page, and the page."""
    st.set_page_config(page_icon="📄", layout="wide", initial_sidebar_state=SIDEBAR_PIXELS)
    st.html(style_sheet())
    listen_to_answers(share_prediction)
    listen_to_answers(note_answer)
    open_questions_in(is_in_room)
    figure = asked_figure()
    if figure is not None:
        st.html(FIGURE_STYLE)
    page = st.navigation(navigation_pages(figure or HOME), position="sidebar" if figure is None else "hidden")
    course_page = figure or course_page_of(page)
    draw_present(course_page)
    draw_room_bar(is_room_page=course_page is ROOM)
    try:
        page.run()
        draw_progress(course_page)
        rerun_after_reconnect()
    finally:  # a page may also end by stopping, while it waits for its model
        import_heavy_modules_soon()


if st.runtime.exists():
    main()
else:
    pages = page_routes(page.url_path or "" for page in COURSE)
    app = st.App(
        __file__,
        lifespan=lifespan,
        on_script_error=show_error_sentence,
        routes=[
            *redirect_to(base_path()),
            *below_base_path([METRICS_ROUTE, *FRAMES_ROUTES, *ROOM_ROUTES, *pages]),
        ],
        middleware=[
            Middleware(ForwardedHostMiddleware),
            Middleware(SecurityMiddleware),
            Middleware(UpgradeRequiredMiddleware),
        ],
    )
