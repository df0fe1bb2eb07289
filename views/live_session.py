"""Which engine the live page works on: this tab's, built from its settings."""

from __future__ import annotations

import streamlit as st

from views.engine_session import EngineSession
from views.html_parts import notice
from views.live_settings import engine_config
from views.server import ReadyModel
from views.tab import Tab


def live_session(tab: Tab, model: ReadyModel) -> EngineSession:
    """The tab's engine, made anew when there is none, or when the settings changed before it was used."""
    session = tab.open_session
    if session is None or (session.is_unused and waits_for_reset(session, model.weights.name)):
        session = _open(tab, model)
    return session


def waits_for_reset(session: EngineSession, model: str) -> bool:
    """Whether the settings now ask for another engine than this one."""
    return session.engine.config != engine_config(model)


def _open(tab: Tab, model: ReadyModel) -> EngineSession:
    # Imported here so that the page's frame is drawn before torch is loaded.
    from engine import Engine
    from engine.loading import load_parts

    config = engine_config(model.weights.name)
    try:
        return tab.replace(lambda: EngineSession(Engine(config, load_parts(config, model.weights))))
    except (ValueError, MemoryError) as error:
        st.html(notice(f"{error}", "problem"))
        st.stop()
