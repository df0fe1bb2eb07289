"""Two sliders that drive the engine while they are dragged: requests that have started, new tokens of the longest.

To the right they do what the buttons do: a request more is the prompt added once more and one step, a token more is as
many steps as it takes. To the left nothing is undone: the map goes back to the step where it was so.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from views.browser.assets import read_assets, with_texts
from views.live.controls import REFUSAL, add_request
from views.live.link import view_last_step, view_step, viewed_step
from views.live.run_history import history_of
from views.live.settings import MAX_TOKENS
from views.server.engine_session import EngineSession, Moment

MOST_REQUESTS = 8
MOST_STEPS_AT_ONCE = 64
"""A report that asks for more steps than this gets so many; the slider then stands where the engine is."""
_KEY = "drag"


_DRAG = st.components.v2.component(
    "live_drag",
    html=read_assets("live/drag.html"),
    css=read_assets("live/drag.css"),
    js=with_texts(read_assets("live/drag.js")),
)


def draw_drag(session: EngineSession, moment: Moment) -> None:
    """The sliders, where the map stands."""
    steps = history_of(session).steps
    at = viewed_step()
    shown = steps[-1 if at is None else min(at, len(steps) - 1)]
    now = steps[-1]
    reported = st.session_state.get(_KEY)
    _DRAG(
        key=_KEY,
        data={
            "values": {"requests": shown.num_started, "tokens": shown.num_output_tokens},
            "most": {
                "requests": max(MOST_REQUESTS, now.num_started),
                "tokens": max(MAX_TOKENS.value, now.num_output_tokens),
            },
            "number": _number(None if reported is None else reported.wanted),
            "disabled": moment.is_running or moment.replay_until is not None or bool(moment.problem),
        },
        default={"wanted": None},
        on_wanted_change=partial(_dragged, session),
        height="content",
    )


def set_num_requests(session: EngineSession, wanted: int) -> None:
    """Let so many requests have started, one step for each that is missing; or look at the last step with no more."""
    history = history_of(session)
    missing = min(wanted, MOST_REQUESTS) - history.steps[-1].num_started
    if missing <= 0:
        view_step(history.last_step_where(lambda summary: summary.num_started <= wanted), session.moment)
        return
    view_last_step()
    for _index in range(missing):
        lacks_one = history_of(session).steps[-1].num_requests < wanted  # else one waits already
        if (lacks_one and not add_request(session)) or not session.step(session.moment.step):
            return


def set_num_tokens(session: EngineSession, wanted: int) -> None:
    """Make steps until a sequence has so many new tokens; or look at the last step where none has more."""
    history = history_of(session)
    if wanted <= history.steps[-1].num_output_tokens:
        view_step(history.last_step_where(lambda summary: summary.num_output_tokens <= wanted), session.moment)
        return
    view_last_step()
    if session.is_unused and not add_request(session):
        return
    for _index in range(MOST_STEPS_AT_ONCE):
        if history_of(session).steps[-1].num_output_tokens >= wanted or not session.step(session.moment.step):
            return


def _dragged(session: EngineSession) -> None:
    wanted = st.session_state[_KEY].wanted
    if not isinstance(wanted, dict) or not isinstance(wanted.get("value"), int | float) or session.is_running:
        return
    st.session_state.pop(REFUSAL, None)
    drive = {"requests": set_num_requests, "tokens": set_num_tokens}.get(str(wanted.get("name")))
    if drive is not None and wanted["value"] >= 0:
        drive(session, int(min(wanted["value"], MAX_TOKENS.high)))


def _number(wanted: Any) -> int:
    number = wanted.get("number") if isinstance(wanted, dict) else None
    return int(number) if isinstance(number, int | float) else 0
