"""What everybody in a room does and sees: a prompt of their own, and the one batch of all prompts."""

from __future__ import annotations

from collections.abc import Set
from functools import partial

import streamlit as st

from engine.i18n import N_, _
from engine.trace.usage import usage_of
from views.browser.state import sync_url
from views.html_parts import escaped, notice, small, usage_figures
from views.live.request_list import request_list
from views.memory_map.component import memory_map, read_selection
from views.room.bar import moved_to
from views.room.quota import Quota, QuotaUsage
from views.room.room import NotInRoomError, Room
from views.room.tab import RoomTab
from views.room.websocket import path_of_frames
from views.server.engine_session import EngineSession, Moment
from views.server.model_registry import ReadyModel
from views.server.sessions import session_registry

POLL_SECONDS = 1.0
NOTHING_YET = N_("No prompt yet. Send one; the presenter makes the steps.")
DEFAULT_REPLY = 16
TITLE = N_("Memory of the room's engine")
MOST_SHOWN = 12
"""Requests in the list: forty browsers get it once a second."""
_MAP, _REFUSAL, _AT, _AT_OF = "room_map", "room_refusal", "room_at", "room_at_of"


def open_engine(room: Room, model: ReadyModel) -> EngineSession:
    """The session all share; the first to come makes it. Raises ValueError or MemoryError with a sentence."""
    return room.engine.open(partial(_build, room, model))


def draw_prompt(room: Room, tab: RoomTab) -> None:
    """The prompt and how long its reply may be."""
    with st.form("room_prompt_form"):  # a prompt that is refused stays, to be mended
        st.text_area(_("Your prompt"), key="room_prompt", height=68)
        st.html(small(_("At most {longest_prompt} characters").format(longest_prompt=room.quota.longest_prompt)))
        st.slider(_("New tokens at most"), 1, room.quota.longest_reply, DEFAULT_REPLY, key="room_max_tokens")
        st.form_submit_button(_("Send to the room"), on_click=_send, args=(tab,))
    if refusal := st.session_state.pop(_REFUSAL, None):
        st.html(notice(refusal, "problem"))


def draw_picture(session: EngineSession, room: Room, tab: RoomTab) -> None:
    """The map. It hears of steps over a WebSocket of its own."""
    memory_map(
        session.frames.initial_payload(),
        key=_MAP,
        position=_asked_position(session),
        live=path_of_frames(room.code),
        on_move=partial(_moved, session),
    )
    if tab.token is not None:
        at = st.session_state.get(_AT)
        sync_url({"at": None if at is None else str(at)})


def draw_words(tab: RoomTab) -> None:
    """Figures and requests, once a second."""
    st.fragment(_draw_words, run_every=POLL_SECONDS, key="room_words")(tab)


def requests_of_room(moment: Moment, own: Set[str]) -> str:
    """`own`: the ids of this person's requests."""
    newest_first = list(reversed(moment.state.requests))
    mine = [name for name in newest_first if name in own]
    others = [name for name in newest_first if name not in own]
    return request_list(moment, mine[:MOST_SHOWN] + others[:MOST_SHOWN], dict.fromkeys(mine, "yours"))


def share_words(quota: Quota, usage: QuotaUsage) -> str:
    """What is left of a person's share."""
    return _(
        "You have sent {prompts} of {most_prompts} prompts and asked for {tokens} of {most_tokens} new tokens; "
        "{num_unfinished} of at most {at_once} are in progress."
    ).format(
        prompts=usage.prompts,
        most_prompts=quota.prompts,
        tokens=usage.tokens,
        most_tokens=quota.tokens,
        num_unfinished=usage.num_unfinished,
        at_once=quota.at_once,
    )


def _build(room: Room, model: ReadyModel) -> EngineSession:
    # Imported here so that the page's frame is drawn before torch is loaded.
    from engine import Engine
    from engine.components import build_components

    config = room.settings.config(model.weights.name)
    session = EngineSession(Engine(config, build_components(config, model.weights)))
    session.frames.title = _(TITLE)
    session_registry().add(session)
    return session


def _send(tab: RoomTab) -> None:
    """From the session, where the form has just put what was typed."""
    room = tab.room
    if room is None:
        return
    try:
        room.add_prompt(tab.member, str(st.session_state["room_prompt"]), int(st.session_state["room_max_tokens"]))
        st.session_state["room_prompt"] = ""
    except (ValueError, NotInRoomError) as refusal:
        st.session_state[_REFUSAL] = str(refusal)


def _draw_words(tab: RoomTab) -> None:
    room = tab.room
    session = None if room is None else room.engine.session
    if room is None or session is None:
        return
    moment = session.moment
    words = []
    if tab.token is None:
        share = share_words(room.quota, room.usage_of(tab.member))
        words.append(f'<p class="pv-scripted" data-share>{escaped(share)}</p>')
    if refusal := room.member(tab.member).refusal:
        words.append(notice(refusal, "problem"))
    words.append(f'<div class="pv-usage">{usage_figures(moment.step, usage_of(moment.state))}</div>')
    if moment.problem:
        words.append(notice(moment.problem, "problem"))
    if num_waiting := room.engine.num_queued:
        words.append(
            notice(
                _("This run is at its length limit. Prompts waiting for the next run: {num_waiting}.").format(
                    num_waiting=num_waiting
                )
            )
        )
    is_own = {name for name in moment.state.requests if room.engine.owner_of(name) == tab.member}
    words.append(requests_of_room(moment, is_own) if moment.state.requests else notice(_(NOTHING_YET)))
    st.html("".join(words))  # in one piece: a list of requests that was drawn elsewhere cannot be left on the page


def _asked_position(session: EngineSession) -> int | None:
    """Where the presenter's map stands, after a move; where the reader left it, else."""
    if st.session_state.get(_AT_OF) != moved_to():
        st.session_state[_AT_OF] = moved_to()
        st.session_state[_AT] = _step_in_address()
        return session.moment.step if st.session_state[_AT] is None else st.session_state[_AT]
    at: int | None = st.session_state.get(_AT)
    return at


def _moved(session: EngineSession) -> None:
    """The reader let go of the map's slider. At the last step, the map follows the run again."""
    shown = read_selection(session.frames.initial_payload(), None, st.session_state[_MAP].position, None)
    st.session_state[_AT] = shown.step if shown.step < session.moment.step else None


def _step_in_address() -> int | None:
    raw = st.query_params.get("at", "")
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 7 else None
