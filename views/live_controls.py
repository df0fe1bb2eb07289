"""The live page's controls. A button's callback acts on the engine; what follows is drawn from the engine alone."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from views import live_settings as settings
from views.engine_session import EngineSession, Moment
from views.html_parts import notice
from views.live_config import MAX_SLOTS
from views.live_link import bring_back, can_bring_back, leave_run, look_at_the_end
from views.live_settings import NumberSetting
from views.recipe import LONGEST_PROMPT
from views.tab import Tab

_REFUSAL = "refusal"


def draw_prompt() -> None:
    """Prepared examples and the prompt box."""
    st.pills("Examples", list(settings.EXAMPLES), key="example", on_change=_take_example)
    st.text_area(
        "Prompt", settings.EXAMPLES["A fact"], key="prompt", height=68, max_chars=LONGEST_PROMPT,
        bind="query-params",
    )


def draw_settings() -> None:
    """Block size, number of blocks, samples; the rest behind "More settings"."""
    columns = st.columns(3)
    for column, setting in zip(columns, (settings.BLOCK_SIZE, settings.NUM_BLOCKS, settings.SAMPLES), strict=True):
        with column:
            _number_input(setting)
    with st.expander("More settings"):
        left, right = st.columns(2)
        with left:
            _choice("Model", "model", settings.models())
            _choice("Pace of Run", "pace", list(settings.PACES))
            _choice("When memory is short", "make_room", list(settings.WAYS_TO_MAKE_ROOM))
            _number_input(settings.MAX_TOKENS)
            _number_input(settings.BEAMS)
        with right:
            _draw_sampling()
    if settings.num_blocks_within_memory() < settings.NUM_BLOCKS.value:
        most, size = settings.num_blocks_within_memory(), settings.BLOCK_SIZE.value
        st.html(notice(f"A tab's pool has at most {MAX_SLOTS} slots, so it gets {most} blocks of {size}."))


def draw_buttons(tab: Tab, session: EngineSession, moment: Moment) -> None:
    """Add request, Step, Run, Pause, Reset."""
    can_step = moment.has_unfinished and not moment.is_running and not moment.problem
    with st.container(horizontal=True, key="buttons"):
        st.button("Add request", key="add", on_click=_add, args=(session,), disabled=moment.goal is not None)
        st.button(
            "Step", key="step", disabled=not can_step, on_click=_step,
            args=(session, moment.step),
        )
        st.button("Run", key="run", disabled=not can_step, on_click=_run, args=(session,))
        st.button("Pause", key="pause", disabled=not moment.is_running, on_click=session.stop)
        st.button("Reset", key="reset", on_click=_reset, args=(tab,))
        if can_bring_back(session):
            st.button("Bring the last run back", key="bring_back", on_click=bring_back, args=(tab,))
    if _REFUSAL in st.session_state:
        st.html(notice(st.session_state[_REFUSAL], "problem"))


def draw_request_choice(session: EngineSession, moment: Moment) -> str | None:
    """Whose block table to show; the newest request until a reader chooses. What can be done to it stands beside."""
    names = [name for name, request in moment.state.requests.items() if request.seq_ids]
    if not names:
        return None
    if st.session_state.get("request") not in names:
        st.session_state["request"] = names[-1]
    with st.container(horizontal=True, vertical_alignment="bottom", key="request_controls"):
        chosen = str(st.pills("Request", names, key="request", required=True))
        is_over = moment.state.requests[chosen].status in ("finished", "refused")
        is_off = is_over or moment.goal is not None
        st.button(
            f"Fork {chosen}", key="fork", disabled=is_off, on_click=_fork,
            args=(session, chosen),
        )  # fmt: skip
        st.button(
            f"Abort {chosen}", key="abort", disabled=is_off, on_click=_abort,
            args=(session, chosen),
        )  # fmt: skip
    return chosen


def _take_example() -> None:
    if st.session_state["example"] is not None:
        st.session_state["prompt"] = settings.EXAMPLES[st.session_state["example"]]


def _add(session: EngineSession) -> None:
    typed, as_chat = settings.chosen_prompt(), settings.uses_chat_template()
    _select_unless_refused(lambda: session.add(typed, settings.sampling_params(), as_chat=as_chat))


def _fork(session: EngineSession, request_id: str) -> None:
    _select_unless_refused(lambda: session.fork(request_id))


def _abort(session: EngineSession, request_id: str) -> None:
    st.session_state.pop(_REFUSAL, None)
    session.abort(request_id)


def _select_unless_refused(act: Callable[[], str]) -> None:
    """Do what gives a new request, and choose it; or keep the sentence that says why not."""
    st.session_state.pop(_REFUSAL, None)
    try:
        st.session_state["request"] = act()
    except ValueError as error:
        st.session_state[_REFUSAL] = str(error)


def _step(session: EngineSession, expected_step: int) -> None:
    st.session_state.pop(_REFUSAL, None)
    session.step(expected_step)
    look_at_the_end()


def _run(session: EngineSession) -> None:
    st.session_state.pop(_REFUSAL, None)
    session.run(settings.seconds_between_steps())
    look_at_the_end()


def _reset(tab: Tab) -> None:
    st.session_state.pop(_REFUSAL, None)
    leave_run(tab)


def _draw_sampling() -> None:
    st.slider(
        "Temperature", 0.0, 2.0, 0.7, 0.1, key="temperature", bind="query-params",
        help="0 always takes the likeliest token; then all samples are the same text.",
    )
    _number_input(settings.SEED)
    st.toggle(
        "Prefix caching", True, key="prefix_caching", bind="query-params",
        help="Full blocks stay findable after use, so an equal beginning is not computed again.",
    )
    st.toggle(
        "Chat template", False, key="chat", bind="query-params",
        help="Wraps the prompt in the marks the model saw when it learnt to chat. They take blocks too.",
    )
    st.toggle(
        "Stop at the end mark", True, key="stop_at_end", bind="query-params",
        help="Off: an answer goes on to its last token, whatever the model says.",
    )


def _number_input(setting: NumberSetting) -> None:
    st.number_input(
        setting.label, setting.low, setting.high, setting.default, key=setting.key, bind="query-params",
        help=setting.explanation,
    )


def _choice(label: str, key: str, options: list[str]) -> None:
    st.selectbox(label, options, key=key, bind="query-params")
