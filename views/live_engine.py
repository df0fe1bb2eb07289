"""The part of the live page that a step changes: buttons, figures, texts, the map and the tools.

It is a fragment: a click in it draws it again and leaves prompt and settings alone, which halves the time to the new
picture.
"""

from __future__ import annotations

import streamlit as st

from views.engine_session import EngineSession
from views.live_controls import draw_buttons, draw_request_choice
from views.live_link import draw_address
from views.live_picture import draw_picture
from views.live_tools import draw_tools, take_selection
from views.tab import Tab

SECONDS_BETWEEN_ADDRESSES = 1.0


@st.fragment
def draw_engine(tab: Tab, session: EngineSession) -> None:
    if session.is_closed:
        st.rerun()  # it was reset: the page makes another one
    moment = session.moment
    draw_buttons(tab, session, moment)
    chosen = draw_request_choice(session, moment)
    draw_picture(session, chosen, moment.is_running, take_selection)
    line_of_address = st.container()
    draw_tools(session, chosen, moment.is_running)
    with line_of_address:  # drawn last: it tells what the tools show
        every = SECONDS_BETWEEN_ADDRESSES if moment.is_running else None
        st.fragment(draw_address, run_every=every, key="address_line")(session)
