"""The live page's controls. A button's callback acts on the engine; what follows is drawn from the engine alone."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from engine.i18n import _
from views.elements.text_box import text_box
from views.html_parts import notice
from views.live import settings
from views.live.config import MAX_SLOTS, WAYS_TO_MAKE_ROOM
from views.live.link import can_restore, close_run, restore_run, view_last_step
from views.live.settings import NumberSetting
from views.server.engine_session import EngineSession, Moment
from views.server.model_registry import model_names
from views.server.sessions import Tab

REFUSAL = "refusal"


def draw_prompt() -> None:
    """The prompt box and prepared examples."""
    text_box(settings.PROMPT, _("Prompt"), settings.EXAMPLES["A fact"], bind="query-params")
    st.pills(
        _("Examples"),
        list(settings.EXAMPLES),
        format_func=_,
        key="example",
        on_change=_take_example,
        label_visibility="collapsed",
    )


def draw_settings() -> None:
    """Folded: of the engine, then of the next request."""
    with st.expander(_("Settings")), st.container(key="live_settings"):
        for setting in settings.NUMBERS:
            _number_input(setting)
        _choice(_("Model"), "model", model_names())
        _choice(_("Speed of Run"), "pace", list(settings.PACES))
        _choice(_("Preemption"), "make_room", list(WAYS_TO_MAKE_ROOM))
        _draw_sampling()
    if settings.num_blocks_within_memory() < settings.NUM_BLOCKS.value:
        most, size = settings.num_blocks_within_memory(), settings.BLOCK_SIZE.value
        st.html(
            notice(
                _("A tab's pool has at most {max_slots} slots, so it gets {most} blocks of {size}.").format(
                    max_slots=MAX_SLOTS, most=most, size=size
                )
            )
        )


def draw_buttons(tab: Tab, session: EngineSession, moment: Moment) -> None:
    """Add request, Step, Run, Pause, Reset."""
    can_step = moment.has_unfinished and not moment.is_running and not moment.problem
    with st.container(horizontal=True, key="buttons"):
        st.button(
            _("Add request"),
            key="add",
            disabled=moment.replay_until is not None,
            on_click=_add,
            args=(session,),
        )
        st.button(
            _("Step"),
            key="step",
            disabled=not can_step,
            on_click=_step,
            args=(session, moment.step),
        )
        st.button(_("Run"), key="run", disabled=not can_step, on_click=_run, args=(session,))
        st.button(_("Pause"), key="pause", disabled=not moment.is_running, on_click=session.pause)
        st.button(_("Reset"), key="reset", on_click=_reset, args=(tab,))
        if can_restore(session):
            st.button(_("Restore the last run"), key="restore_run", on_click=restore_run, args=(tab,))
    if REFUSAL in st.session_state:
        st.html(notice(st.session_state[REFUSAL], "problem"))


def draw_request_choice(session: EngineSession, moment: Moment) -> str | None:
    """Whose block table to show; the newest request until a reader chooses. What can be done to it stands beside."""
    names = [name for name, request in moment.state.requests.items() if request.seq_ids]
    if not names:
        return None
    if st.session_state.get("request") not in names:
        st.session_state["request"] = names[-1]
    with st.container(horizontal=True, vertical_alignment="bottom", key="request_controls"):
        chosen = str(st.pills(_("Request"), names, key="request", required=True))
        is_over = moment.state.requests[chosen].status in ("finished", "refused")
        is_off = is_over or moment.replay_until is not None
        st.button(
            _("Fork {chosen}").format(chosen=chosen), key="fork", disabled=is_off, on_click=_fork,
            args=(session, chosen),
        )  # fmt: skip
        st.button(
            _("Abort {chosen}").format(chosen=chosen), key="abort", disabled=is_off, on_click=_abort,
            args=(session, chosen),
        )  # fmt: skip
    return chosen


def _take_example() -> None:
    if st.session_state["example"] is not None:
        st.session_state["prompt"] = settings.EXAMPLES[st.session_state["example"]]


def _add(session: EngineSession) -> None:
    add_request(session)


def add_request(session: EngineSession) -> bool:
    """For callbacks: the prompt in the box with the settings of now. Whether it was taken; else the page says why."""
    typed, as_chat = settings.chosen_prompt(), settings.uses_chat_template()
    return _select_unless_refused(lambda: session.add(typed, settings.sampling_params(), as_chat=as_chat))


def _fork(session: EngineSession, request_id: str) -> None:
    _select_unless_refused(lambda: session.fork(request_id))


def _abort(session: EngineSession, request_id: str) -> None:
    st.session_state.pop(REFUSAL, None)
    session.abort(request_id)


def _select_unless_refused(act: Callable[[], str]) -> bool:
    """Do what gives a new request, and choose it; or keep the sentence that says why not. Whether it was done."""
    st.session_state.pop(REFUSAL, None)
    try:
        st.session_state["request"] = act()
    except ValueError as error:
        st.session_state[REFUSAL] = str(error)
        return False
    return True


def _step(session: EngineSession, expected_step: int) -> None:
    st.session_state.pop(REFUSAL, None)
    session.step(expected_step)
    view_last_step()


def _run(session: EngineSession) -> None:
    st.session_state.pop(REFUSAL, None)
    session.run(settings.seconds_between_steps())
    view_last_step()


def _reset(tab: Tab) -> None:
    st.session_state.pop(REFUSAL, None)
    close_run(tab)


def _draw_sampling() -> None:
    st.slider(
        _("Temperature"),
        0.0,
        2.0,
        0.7,
        0.1,
        key="temperature",
        bind="query-params",
        help=_("0 always takes the most likely token, so all samples are the same text."),
    )
    st.toggle(
        _("Prefix caching"),
        True,
        key="prefix_caching",
        bind="query-params",
        help=_("Full blocks stay in the prefix cache after use, so an equal prefix is not computed again."),
    )
    st.toggle(
        _("Chat template"),
        False,
        key="chat",
        bind="query-params",
        help=_("Wraps the prompt in the control tokens that the model was trained on for chat. They take slots too."),
    )
    st.toggle(
        _("Stop at EOS"),
        True,
        key="stop_at_end",
        bind="query-params",
        help=_("EOS is the model's end-of-sequence token. Off: an answer continues to its token limit."),
    )


def _number_input(setting: NumberSetting) -> None:
    st.number_input(
        _(setting.label),
        setting.low,
        setting.high,
        setting.default,
        key=setting.key,
        bind="query-params",
        help=_(setting.explanation),
    )


def _choice(label: str, key: str, options: list[str]) -> None:
    st.selectbox(label, options, format_func=_, key=key, bind="query-params")
