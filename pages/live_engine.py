"""The live engine: a prompt goes in, tokens come out, and the block table fills while the reader watches."""

from __future__ import annotations

import streamlit as st

from views.backend_banner import backend_banner
from views.html_parts import notice
from views.live_controls import draw_prompt, draw_settings
from views.live_engine import draw_engine
from views.live_link import arrival_of, draw_arrival
from views.live_session import live_session, waits_for_reset
from views.live_settings import chosen_model, rules
from views.model_loading import wait_for_model
from views.tab import this_tab
from views.url_values import correct_address, draw_notes

correct_address(rules())
tab = this_tab()
arrival = arrival_of(tab)
st.title("Live engine")
what_runs = st.container()
prompt_side, settings_side = st.columns([3, 2], gap="medium")
with prompt_side:
    draw_prompt()
with settings_side:
    draw_settings()
draw_notes()

model = wait_for_model(chosen_model())
session = live_session(tab, model, arrival)
what_runs.html(backend_banner(session.engine.trace.info))
draw_arrival(arrival)
if waits_for_reset(session, model.weights.name):
    st.html(notice("The new engine settings apply after Reset, which drops the requests there are."))
draw_engine(tab, session)
