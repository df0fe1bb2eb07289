"""The link of the live page: a tab that comes with one gets its engine back, or one that repeats the run.

    ?engine=   the name of an engine that may still be open here: a reload finds it again, with all its steps
    ?run=      the run itself (views/recipe.py): works anywhere, later too
    ?at=       the step that the map shows, when it is not the last
    ?slot= ... what the tool that is shown looks at (views/lab_choice.py)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from views.address import keep_in_address
from views.engine_session import EngineSession, Moment
from views.html_parts import notice
from views.lab_choice import in_address, take_from_address
from views.live_settings import models
from views.recipe import MAX_STEPS, Recipe, RecipeError
from views.streamlit_private import uninterrupted
from views.tab import Tab

TOO_LONG = (
    "This run is too long for a link: its prompts do not fit. A reload still finds it here. "
    "To keep it, download its trace under Take it away."
)
THE_END = 10**9
"""A position further than any frame: the map goes to the last one, and on with those that come."""
_ARRIVAL, _AT, _JUMP, _FOUND = "arrival", "at", "look_at_the_end", "found_in_address"
_LEFT = "run_that_was_left"


@dataclass
class Arrival:
    """What the address asked for when the tab came. `recipe` is taken out once it is being repeated."""

    recipe: Recipe | None = None
    problem: str = ""


def arrival_of(tab: Tab) -> Arrival:
    """Read the address, once a tab: take the engine up if it is still open, else see which run it carries."""
    if _ARRIVAL not in st.session_state:
        with uninterrupted():
            address = st.session_state.pop(_FOUND, None) or st.query_params.to_dict()
            st.session_state[_ARRIVAL] = _arrive(tab, address)
            st.session_state[_AT] = _step_of(address.get("at", ""))
            take_from_address(address)
    arrival: Arrival = st.session_state[_ARRIVAL]
    return arrival


def leave_run(tab: Tab) -> None:
    """The reader wants to begin again. What was done so far can be brought back until something new is done."""
    session = tab.open_session
    if session is not None and session.moment.deeds:
        st.session_state[_LEFT] = _recipe(session, session.moment)
    tab.close()
    st.session_state[_ARRIVAL] = Arrival()
    st.session_state[_AT] = None


def can_bring_back(session: EngineSession) -> bool:
    """Whether there is a run that was left, and nothing in its place yet."""
    return session.is_unused and _LEFT in st.session_state


def bring_back(tab: Tab) -> None:
    """For callbacks: repeat the run that was left."""
    recipe = st.session_state.pop(_LEFT)
    tab.close()
    st.session_state["model"] = recipe.config.model
    st.session_state[_ARRIVAL] = Arrival(recipe)


def step_looked_at() -> int | None:
    """The step that the map shows; None while it follows the run."""
    step: int | None = st.session_state.get(_AT)
    return step


def look_at(step: int, moment: Moment) -> None:
    """The reader moved the map to a step. At the last one, it follows the run again."""
    st.session_state[_AT] = step if step < moment.step else None


def look_at_the_end() -> None:
    """For callbacks: whoever makes a step wants to see it."""
    st.session_state[_AT] = None
    st.session_state[_JUMP] = True


def asked_position() -> int | None:
    """Where the map is to stand; None: where it stands."""
    at = step_looked_at()
    return THE_END if st.session_state.pop(_JUMP, False) and at is None else at


def draw_arrival(arrival: Arrival) -> None:
    if arrival.problem:
        st.html(notice(arrival.problem, "problem"))


def draw_address(session: EngineSession) -> None:
    """Bring the address up to date, and say when it cannot hold the run."""
    moment = session.moment
    text = None if not moment.deeds else _recipe(session, moment).to_text()
    if moment.deeds and text is None:
        st.html(notice(TOO_LONG))
    at = step_looked_at()
    place = {"engine": session.name, "run": text, "at": None if at is None else str(at)}
    with uninterrupted():  # what was found is told once
        found = keep_in_address({**place, **in_address()})
        if found is not None and session.is_unused:  # the server was started anew under an open tab
            session.close()
            st.session_state.pop(_ARRIVAL)
            st.session_state[_FOUND] = found
            st.rerun()


def _recipe(session: EngineSession, moment: Moment) -> Recipe:
    """While a run is being repeated, its link goes on to say where it goes."""
    steps = moment.step if moment.goal is None else max(moment.step, moment.goal)
    return Recipe(session.engine.config, (*moment.deeds, *moment.pending), steps)


def _arrive(tab: Tab, address: Mapping[str, str]) -> Arrival:
    name, text = address.get("engine"), address.get("run")
    if tab.open_session is not None or (name and tab.take_up(name) is not None) or not text:
        return Arrival()
    try:
        recipe = Recipe.from_text(text)
    except RecipeError as error:
        return Arrival(problem=f"{error} The page starts with no request.")
    if recipe.config.model not in models():
        name = recipe.config.model
        return Arrival(problem=f"The run in this address used the model {name[:80]!r}, which this app does not offer.")
    st.session_state["model"] = recipe.config.model
    return Arrival(recipe)


def _step_of(raw: str) -> int | None:
    return min(int(raw), MAX_STEPS) if raw.isascii() and raw.isdigit() and len(raw) < 9 else None
