"""What only the presenter's Room page shows: how to join, the engine's controls, who is here."""

from __future__ import annotations

from functools import lru_cache

import segno
import streamlit as st

from views import server
from views.html_parts import escaped, figures, notice, small
from views.live_settings import PACES
from views.room import codes
from views.room.desk import Desk
from views.room.reach import Reach, own_address, reach_of
from views.room.room import Room
from views.room.room_settings import chosen_settings, draw_settings
from views.room.way_in import SHOWS_TOKEN

TOKEN_WORDS = (
    "Your presenter's token. It is shown this once: note it now, to take the room over on a second device. "
    "Whoever has it can step, reset and end the room, and read names. This tab keeps it; a reload loses nothing."
)
LEFT = "somebody who has left"
HEALTH_WORDS = "How late a step of Run begins, and how long the model takes for it."
SECONDS_BETWEEN_LOOKS = 1.0


def draw_invitation(room: Room) -> None:
    """The code, large; the link and its QR code; who can reach this server."""
    reach = reach_of(st.get_option("server.address"), st.context.url or "", own_address())
    if st.session_state.get(SHOWS_TOKEN):
        _draw_token(room)
    st.html(_invitation(room.code, reach))
    st.html(notice(reach.sentence))


def draw_controls(room: Room, the_desk: Desk) -> None:
    """Step, Run, Pause, Reset, End."""
    is_running = room.engine.pace is not None
    st.selectbox("Pace of Run", list(PACES), 1, key="room_pace", disabled=is_running)
    with st.container(horizontal=True, key="room_buttons"):
        st.button("Step", key="room_step", disabled=is_running, on_click=_step, args=(room, the_desk))
        st.button("Run", key="room_run", disabled=is_running, on_click=_run, args=(the_desk,))
        st.button("Pause", key="room_pause", disabled=not is_running, on_click=the_desk.pause)
    with st.expander("New engine, end of the room"):
        draw_settings()
        with st.container(horizontal=True):
            st.button("Reset", key="room_reset", on_click=_reset, args=(the_desk,))
            st.button("End the room", key="room_end", on_click=the_desk.end)
        st.html(small("Reset drops all requests, takes these settings and gives everybody their full share again."))


def draw_people(the_desk: Desk) -> None:
    """Folded: names are for the presenter, and this screen may be on the wall."""
    with st.expander("Names (only you can see them)"):
        st.fragment(_draw_names, run_every=SECONDS_BETWEEN_LOOKS, key="room_names")(the_desk)


def draw_health(room: Room) -> None:
    """Folded: whether this machine keeps up with the room."""
    with st.expander("Does this machine keep up?"):
        st.fragment(_draw_health, run_every=SECONDS_BETWEEN_LOOKS, key="room_health")(room)
        st.html(small(HEALTH_WORDS))


def _draw_health(room: Room) -> None:
    health = room.engine.lateness.health
    st.html(
        figures(
            [
                ("num_ticks", "Steps of a run", f"{health.num_ticks}"),
                ("late_p99", "Late, 99 of 100", f"{health.late_p99:.1f} ms"),
                ("late_max", "Late, the worst", f"{health.late_max:.1f} ms"),
                ("step_p50", "A step, half of them", f"{health.step_p50:.1f} ms"),
                ("step_p95", "A step, 95 of 100", f"{health.step_p95:.1f} ms"),
                ("num_loads", "Models loaded", f"{server.model_shelf().num_loads}"),
            ]
        )
    )


def _draw_names(the_desk: Desk) -> None:
    people = the_desk.people()
    st.html(
        f'<dl class="pv-people"><dt>Stuck</dt><dd data-people="stuck">{_names(people.stuck)}</dd>'
        f'<dt>Here</dt><dd data-people="here">{_names(people.names)}</dd>'
        f'<dt>Requests under way</dt><dd data-people="requests">{_requests(the_desk)}</dd></dl>'
    )


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(escaped(name) for name in names) or "nobody"


def _requests(the_desk: Desk) -> str:
    """`A: Ada, B: Bob`"""
    pairs = the_desk.requests_under_way().items()
    return ", ".join(f"{escaped(request_id)}: {escaped(name or LEFT)}" for request_id, name in pairs) or "none"


def _draw_token(room: Room) -> None:
    with st.container(border=True, key="room_token_note"):
        st.html(f"<p>{escaped(TOKEN_WORDS)}</p>")
        st.code(room.token, language=None)
        st.button("I have noted it", key="room_token_noted", on_click=_hide_token)


def _hide_token() -> None:
    st.session_state[SHOWS_TOKEN] = False


def _invitation(code: str, reach: Reach) -> str:
    link = escaped(reach.link(code))
    return (
        f'<div class="pv-invitation"><img src="{qr_code(reach.link(code))}" alt="QR code of the link to this room">'
        f'<dl><dt>Code</dt><dd class="code" data-room-code="{code}">{codes.shown(code)}</dd>'
        f'<dt>Link</dt><dd><a href="{link}">{link}</a></dd></dl></div>'
    )


@lru_cache(maxsize=16)
def qr_code(link: str) -> str:
    """An SVG image as a data: address, drawn here: dark on white with its margin, as cameras want it."""
    return segno.make(link, error="m", micro=False).svg_data_uri(scale=4, border=4, dark="#000", light="#fff")


def _step(room: Room, the_desk: Desk) -> None:
    if (session := room.engine.session) is not None:
        the_desk.step(session.moment.step)


def _run(the_desk: Desk) -> None:
    the_desk.run(PACES[st.session_state["room_pace"]])


def _reset(the_desk: Desk) -> None:
    the_desk.reset(chosen_settings())
