"""Which engine the live page works on: this tab's, built from its settings, or from the run of its address."""

from __future__ import annotations

import streamlit as st

from engine.config import EngineConfig
from views.engine_session import EngineSession
from views.html_parts import notice
from views.live_link import Arrival
from views.live_settings import engine_config
from views.server import ReadyModel
from views.tab import Tab


def live_session(tab: Tab, model: ReadyModel, arrival: Arrival) -> EngineSession:
    """The tab's engine, made anew when there is none, or when the settings changed before it was used."""
    session = tab.open_session
    if session is None and arrival.recipe is not None:
        return _repeat(tab, model, arrival)
    if session is None or (session.is_unused and waits_for_reset(session, model.weights.name)):
        session = _open(tab, model, engine_config(model.weights.name))
    return session


def waits_for_reset(session: EngineSession, model: str) -> bool:
    """Whether the settings now ask for another engine than this one."""
    return session.engine.config != engine_config(model)


def _repeat(tab: Tab, model: ReadyModel, arrival: Arrival) -> EngineSession:
    """The engine of the link, on its way to the step of the link. Another model would say something else."""
    recipe, arrival.recipe = arrival.recipe, None
    assert recipe is not None
    if recipe.config.model != model.weights.name:
        arrival.problem = f"The run in this address needs the model {recipe.config.model}, which cannot be had now."
        return _open(tab, model, engine_config(model.weights.name))
    session = _open(tab, model, recipe.config)
    session.repeat(recipe.deeds, recipe.num_steps)
    return session


def _open(tab: Tab, model: ReadyModel, config: EngineConfig) -> EngineSession:
    # Imported here so that the page's frame is drawn before torch is loaded.
    from engine import Engine
    from engine.loading import load_parts

    try:
        return tab.replace(lambda: EngineSession(Engine(config, load_parts(config, model.weights))))
    except (ValueError, MemoryError) as error:
        st.html(notice(f"{error}", "problem"))
        st.stop()
