"""What only the presenter's Room page shows: how to join, the engine's controls, who is here."""

from __future__ import annotations

import streamlit as st

from engine.i18n import N_, _
from views.html_parts import escaped, figures, notice, small
from views.live.settings import PACES
from views.room import codes
from views.room.network import NetworkExposure, exposure_of_this_server, qr_code
from views.room.presenter_api import PresenterApi
from views.room.room import Room
from views.room.settings import chosen_settings, draw_settings
from views.server.model_registry import model_registry

TOKEN_WORDS = N_(
    "With it you can take the room over on a second device. Anyone who has it can step, reset and end the "
    "room, and read names. This tab keeps it; a reload loses nothing."
)
LEFT = N_("someone who has left")
HEALTH_WORDS = N_("How late each step of Run starts, and how long the model takes for it.")
POLL_SECONDS = 1.0


def draw_invitation(room: Room, presenter: PresenterApi) -> None:
    """The code, the link and its QR code, who can reach this server: large until somebody has joined, then folded."""
    exposure = exposure_of_this_server()
    every = POLL_SECONDS
    st.fragment(_draw_invitation, run_every=every, key="room_invitation")(room.code, exposure, presenter)


def draw_controls(room: Room, presenter: PresenterApi) -> None:
    """Step, Run, Pause, and how fast."""
    is_running = room.engine.pace is not None
    with st.container(horizontal=True, vertical_alignment="bottom", key="room_buttons"):
        st.button(_("Step"), key="room_step", disabled=is_running, on_click=_step, args=(room, presenter))
        st.button(_("Run"), key="room_run", disabled=is_running, on_click=_run, args=(presenter,))
        st.button(_("Pause"), key="room_pause", disabled=not is_running, on_click=presenter.pause)
        st.selectbox(
            _("Speed of Run"),
            list(PACES),
            1,
            format_func=_,
            key="room_pace",
            disabled=is_running,
            label_visibility="collapsed",
            width=190,
        )


def draw_reset(presenter: PresenterApi) -> None:
    """Folded: another engine, and the end of the room."""
    with st.expander(_("Reset the engine, end the room")):
        draw_settings()
        with st.container(horizontal=True):
            st.button(_("Reset"), key="room_reset", on_click=_reset, args=(presenter,))
            st.button(_("End the room"), key="room_end", on_click=presenter.end)
        st.html(small(_("Reset drops all requests, applies these settings and restores everybody's full quota.")))


def draw_people(presenter: PresenterApi) -> None:
    """Folded: names are for the presenter, and this screen may be on the wall."""
    with st.expander(_("Names (only you can see them)")):
        st.fragment(_draw_names, run_every=POLL_SECONDS, key="room_names")(presenter)


def draw_health(room: Room) -> None:
    """Folded: whether this machine keeps up with the room."""
    with st.expander(_("Does this machine keep up?")):
        st.fragment(_draw_health, run_every=POLL_SECONDS, key="room_health")(room)
        st.html(small(_(HEALTH_WORDS)))


def _draw_health(room: Room) -> None:
    health = room.engine.tick_latency.health
    st.html(
        figures(
            [
                ("num_ticks", _("Steps of a run"), f"{health.num_ticks}"),
                ("late_p99", _("Delay, 99th percentile"), f"{health.late_p99:.1f} ms"),
                ("late_max", _("Delay, longest"), f"{health.late_max:.1f} ms"),
                ("step_p50", _("Step time, median"), f"{health.step_p50:.1f} ms"),
                ("step_p95", _("Step time, 95th percentile"), f"{health.step_p95:.1f} ms"),
                ("num_loads", _("Models loaded"), f"{model_registry().num_loads}"),
            ]
        )
    )


def _draw_names(presenter: PresenterApi) -> None:
    people = presenter.people()
    stuck, here, under_way = _("Stuck"), _("Here"), _("Requests in progress")
    st.html(
        f'<dl class="pv-people"><dt>{stuck}</dt><dd data-people="stuck">{_names(people.stuck)}</dd>'
        f'<dt>{here}</dt><dd data-people="here">{_names(people.names)}</dd>'
        f'<dt>{under_way}</dt><dd data-people="requests">{_requests(presenter)}</dd></dl>'
    )


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(escaped(name) for name in names) or _("nobody")


def _requests(presenter: PresenterApi) -> str:
    """`A: Ada, B: Bob`"""
    pairs = presenter.unfinished_requests().items()
    return ", ".join(f"{escaped(request_id)}: {escaped(name or _(LEFT))}" for request_id, name in pairs) or _("none")


def draw_token(room: Room) -> None:
    """Hidden until asked for: this screen may be on the wall."""
    if st.toggle(_("Show the presenter's token"), key="room_token_shown"):
        with st.container(border=True, key="room_token_note"):
            st.html(f"<p>{escaped(_(TOKEN_WORDS))}</p>")
            st.code(room.token, language=None)


def _draw_invitation(code: str, exposure: NetworkExposure, presenter: PresenterApi) -> None:
    is_open = " open" if not presenter.people().num_joined else ""
    title = _("Invite: {code}").format(code=codes.shown(code))
    st.html(
        f'<details class="pv-invite"{is_open}><summary>{title}</summary>'
        f"{_invitation(code, exposure)}{notice(exposure.sentence)}</details>"
    )


def _invitation(code: str, exposure: NetworkExposure) -> str:
    link, alt = escaped(exposure.link(code)), escaped(_("QR code of the link to this room"))
    code_name, link_name = _("Code"), _("Link")
    return (
        f'<div class="pv-invitation"><img src="{qr_code(exposure.link(code))}" alt="{alt}">'
        f'<dl><dt>{code_name}</dt><dd class="code" data-room-code="{code}">{codes.shown(code)}</dd>'
        f'<dt>{link_name}</dt><dd><a href="{link}">{link}</a></dd></dl></div>'
    )


def _step(room: Room, presenter: PresenterApi) -> None:
    if (session := room.engine.session) is not None:
        presenter.step(session.moment.step)


def _run(presenter: PresenterApi) -> None:
    presenter.run(PACES[st.session_state["room_pace"]])


def _reset(presenter: PresenterApi) -> None:
    presenter.reset(chosen_settings())
