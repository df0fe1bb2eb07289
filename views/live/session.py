"""Which engine the live page works on: this tab's, built from its settings, or from the run of its address."""

from __future__ import annotations

import streamlit as st

from engine.config import EngineConfig
from engine.i18n import _
from views.html_parts import notice
from views.live.link import LinkedRun
from views.live.settings import engine_config
from views.server.engine_session import EngineSession
from views.server.model_registry import ReadyModel
from views.server.sessions import Tab


def live_session(tab: Tab, model: ReadyModel, linked_run: LinkedRun) -> EngineSession:
    """The tab's engine, made anew when there is none, or when the settings changed before it was used."""
    session = tab.open_session
    if session is None and linked_run.recipe is not None:
        return _repeat(tab, model, linked_run)
    if session is None or (session.is_unused and waits_for_reset(session, model.weights.name)):
        session = _open(tab, model, engine_config(model.weights.name))
    return session


def waits_for_reset(session: EngineSession, model: str) -> bool:
    """Whether the settings now ask for another engine than this one."""
    return session.engine.config != engine_config(model)


def _repeat(tab: Tab, model: ReadyModel, linked_run: LinkedRun) -> EngineSession:
    """The engine of the link, replaying up to the step of the link. With another model there is nothing to replay."""
    recipe, linked_run.recipe = linked_run.recipe, None
    assert recipe is not None
    if recipe.config.model != model.weights.name:
        linked_run.problem = _("The run in this link needs the model {model}, which is not available now.").format(
            model=recipe.config.model
        )
        return _open(tab, model, engine_config(model.weights.name))
    session = _open(tab, model, recipe.config)
    session.replay(recipe.commands, recipe.num_steps)
    return session


def _open(tab: Tab, model: ReadyModel, config: EngineConfig) -> EngineSession:
    # Imported here so that the page's frame is drawn before torch is loaded.
    from engine import Engine
    from engine.components import build_components

    try:
        return tab.replace(lambda: EngineSession(Engine(config, build_components(config, model.weights))))
    except (ValueError, MemoryError) as error:
        st.html(notice(f"{error}", "problem"))
        st.stop()
