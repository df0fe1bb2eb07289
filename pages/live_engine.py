"""The live engine: a prompt goes in, tokens come out, and the block table fills while the reader watches."""

from __future__ import annotations

import streamlit as st

from engine.i18n import _
from views.html_parts import notice
from views.live.controls import draw_prompt, draw_settings
from views.live.link import draw_link_problem, linked_run_of
from views.live.panel import draw_engine
from views.live.session import live_session, waits_for_reset
from views.live.settings import PROMPT, chosen_model, rules
from views.live.tools import TOOL_RULE
from views.models.backend_banner import backend_banner
from views.models.loading import wait_for_model
from views.server.sessions import this_tab
from views.url_values import correct_url, draw_notes

correct_url([*rules(), TOOL_RULE])
tab = this_tab()
linked_run = linked_run_of(tab)
with st.container(key="live"):
    with st.container(key="live_setup"):
        st.title(_("Live engine"))
        draw_prompt()
        draw_settings()
        draw_notes([*rules(), TOOL_RULE], but=PROMPT.key)
        loading = st.empty()
    with loading:
        model = wait_for_model(chosen_model())
    session = live_session(tab, model, linked_run)
    with st.container(key="live_notes"):
        draw_link_problem(linked_run)
        if waits_for_reset(session, model.weights.name):
            st.html(notice(_("The new engine settings apply after Reset, which drops the requests there are.")))
        st.html(backend_banner(session.engine.trace.info))
    draw_engine(tab, session)
