"""The link of the live page: a tab that comes with one gets its engine back, or one that repeats the run.

?engine=   the name of an engine that may still be open here: a reload finds it again, with all its steps
?run=      the run itself (views/live/recipe.py): works anywhere, later too
?at=       the step that the map shows, when it is not the last
?slot= ... what the tool that is shown looks at (views/live/tool_settings.py)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from engine.i18n import N_, _
from views.browser.state import sync_url
from views.html_parts import notice
from views.live.recipe import MAX_STEPS, Recipe, RecipeError
from views.live.tool_settings import in_address, take_from_address
from views.server.engine_session import EngineSession, Moment
from views.server.model_registry import model_names
from views.server.sessions import Tab
from views.server.streamlit_internals import uninterrupted

TOO_LONG = N_(
    "This run is too long for a link: its prompts do not fit. Reloading this tab still restores it. To keep "
    "it, save its trace under Download."
)
THE_END = 10**9
"""A position further than any frame: the map goes to the last one, and on with those that come."""
_LINKED_RUN, _AT, _JUMP, _FOUND = "linked_run", "at", "view_last_step", "found_in_address"
_LEFT, _TAKEN = "run_that_was_left", "run_taken_from_address"


@dataclass
class LinkedRun:
    """What the address asked for when the tab came. `recipe` is taken out once it is being repeated."""

    recipe: Recipe | None = None
    problem: str = ""


def linked_run_of(tab: Tab) -> LinkedRun:
    """Read the address when the tab comes: take the engine up if it is still open, else see which run it carries.

    A link to a run that is followed later, in a tab that has an engine, leaves that engine's run for the link's.
    """
    if _LINKED_RUN in st.session_state and _asks_for_another_run(st.query_params.to_dict()):
        with uninterrupted():
            close_run(tab)
            st.session_state.pop(_LINKED_RUN)
    if _LINKED_RUN not in st.session_state:
        with uninterrupted():
            address = st.session_state.pop(_FOUND, None) or st.query_params.to_dict()
            st.session_state[_TAKEN] = address.get("run")
            st.session_state[_LINKED_RUN] = _read_address(tab, address)
            st.session_state[_AT] = _step_of(address.get("at", ""))
            take_from_address(address)
    linked_run: LinkedRun = st.session_state[_LINKED_RUN]
    return linked_run


def _asks_for_another_run(address: Mapping[str, str]) -> bool:
    """Whether this is a link's address: the page's own names the engine, too, once the browser has written it."""
    if "engine" in address:
        st.session_state.pop(_TAKEN, None)
        return False
    return address.get("run") not in (None, st.session_state.get(_TAKEN))


def close_run(tab: Tab) -> None:
    """The reader wants to begin again. What was done so far can be brought back until something new is done."""
    session = tab.open_session
    if session is not None and session.moment.commands:
        st.session_state[_LEFT] = _recipe(session, session.moment)
    tab.close()
    st.session_state[_LINKED_RUN] = LinkedRun()
    st.session_state[_AT] = None


def can_restore(session: EngineSession) -> bool:
    """Whether there is a run that was left, and nothing in its place yet."""
    return session.is_unused and _LEFT in st.session_state


def restore_run(tab: Tab) -> None:
    """For callbacks: repeat the run that was left."""
    recipe = st.session_state.pop(_LEFT)
    tab.close()
    st.session_state["model"] = recipe.config.model
    st.session_state[_LINKED_RUN] = LinkedRun(recipe)


def viewed_step() -> int | None:
    """The step that the map shows; None while it follows the run."""
    step: int | None = st.session_state.get(_AT)
    return step


def view_step(step: int, moment: Moment) -> None:
    """The reader moved the map to a step. At the last one, it follows the run again."""
    st.session_state[_AT] = step if step < moment.step else None


def view_last_step() -> None:
    """For callbacks: whoever makes a step wants to see it."""
    st.session_state[_AT] = None
    st.session_state[_JUMP] = True


def asked_position() -> int | None:
    """Where the map is to stand; None: where it stands."""
    at = viewed_step()
    return THE_END if st.session_state.pop(_JUMP, False) and at is None else at


def draw_link_problem(linked_run: LinkedRun) -> None:
    """Say why the run of the address cannot be repeated, if it cannot."""
    if linked_run.problem:
        st.html(notice(linked_run.problem, "problem"))


def draw_address(session: EngineSession) -> None:
    """Bring the address up to date, and say when it cannot hold the run."""
    moment = session.moment
    text = None if not moment.commands else _recipe(session, moment).to_text()
    if moment.commands and text is None:
        st.html(notice(_(TOO_LONG)))
    at = viewed_step()
    place = {"engine": session.name, "run": text, "at": None if at is None else str(at)}
    with uninterrupted():  # what was found is told once
        found = sync_url({**place, **in_address()})
        if found is not None and session.is_unused:  # the server was started anew under an open tab
            session.close()
            st.session_state.pop(_LINKED_RUN)
            st.session_state[_FOUND] = found
            st.rerun()


def _recipe(session: EngineSession, moment: Moment) -> Recipe:
    """While a run is being repeated, its link goes on to say where it goes."""
    steps = moment.step if moment.replay_until is None else max(moment.step, moment.replay_until)
    return Recipe(session.engine.config, (*moment.commands, *moment.pending), steps)


def _read_address(tab: Tab, address: Mapping[str, str]) -> LinkedRun:
    name, text = address.get("engine"), address.get("run")
    if tab.open_session is not None or (name and tab.reattach(name) is not None) or not text:
        return LinkedRun()
    try:
        recipe = Recipe.from_text(text)
    except RecipeError as error:
        return LinkedRun(problem=_("{error} The page starts with no request.").format(error=error))
    if recipe.config.model not in model_names():
        name = recipe.config.model
        return LinkedRun(
            problem=_("The run in this link used the model {name!r}, which this app does not offer.").format(
                name=name[:80]
            )
        )
    st.session_state["model"] = recipe.config.model
    return LinkedRun(recipe)


def _step_of(raw: str) -> int | None:
    return min(int(raw), MAX_STEPS) if raw.isascii() and raw.isdigit() and len(raw) < 9 else None
