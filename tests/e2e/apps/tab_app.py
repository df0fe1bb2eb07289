"""A page whose engine is let go a moment after its tab has gone; it says how many engines are open."""

from __future__ import annotations

import streamlit as st

from engine import Engine, EngineConfig
from views.server.engine_session import EngineSession
from views.server.sessions import session_registry, this_tab

st.set_page_config(page_title="tab")
tab = this_tab()
tab.reattach_seconds = 0.5
if tab.open_session is None:
    tab.replace(lambda: EngineSession(Engine(EngineConfig(model="tiny-random", block_size=4, num_blocks=8))))
st.button("Look")
st.text(f"open engines: {len(session_registry())}")
