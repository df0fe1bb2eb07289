"""The page's controls: which server, which file; and the problems there are, in plain words."""

from __future__ import annotations

import streamlit as st

from views import remote_shown
from views.html_parts import notice
from views.remote_shown import MAX_RANKS, Shown
from views.url_values import NumberRule, Rule, TextRule

EVENTS, REPLAY, API = "tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558", "http://127.0.0.1:8000"
LONGEST_ADDRESS = 200
START_HERE = (
    "No server at hand? Open the recorded stream, or start one on this machine: python -m engine.serve. "
    "Its addresses are the ones filled in."
)


def rules() -> list[Rule]:
    """What the address may say."""
    return [
        TextRule("events", "Events address", LONGEST_ADDRESS),
        TextRule("replay", "Replay address", LONGEST_ADDRESS),
        TextRule("api", "HTTP address", LONGEST_ADDRESS),
        NumberRule("ranks", "Data-parallel ranks", 1, MAX_RANKS, 1),
    ]


def draw_addresses(now: Shown) -> None:
    """Address fields and the buttons that open something."""
    events_side, replay_side, api_side = st.columns(3)
    with events_side:
        st.text_input("Events address", EVENTS, key="events", max_chars=LONGEST_ADDRESS, bind="query-params")
    with replay_side:
        st.text_input("Replay address", REPLAY, key="replay", max_chars=LONGEST_ADDRESS, bind="query-params",
                      help="Sends old events again; may be blank.")  # fmt: skip
    with api_side:
        st.text_input("HTTP address", API, key="api", max_chars=LONGEST_ADDRESS, bind="query-params",
                      help="For metrics and prompts; may be blank.")  # fmt: skip
    with st.container(horizontal=True, key="remote_buttons"):
        st.button("Attach", key="attach", on_click=_attach, args=(now,))
        open_recorded = remote_shown.open_recorded
        st.button("Open the recorded vLLM stream", key="open_recorded", on_click=open_recorded, args=(now,))
        st.button("Close", key="close_remote", disabled=now.source is None, on_click=now.show, args=(None,))
    with st.expander("More: several ranks, a file"):
        st.number_input(
            "Data-parallel ranks", 1, MAX_RANKS, 1, key="ranks", bind="query-params",
            help="Each rank publishes at the port after the one before.",
        )  # fmt: skip
        st.file_uploader(
            "A trace or a recording (.json, .msgpack)", type=["json", "msgpack"], key="remote_file",
            on_change=_open_file, args=(now,), max_upload_size=remote_shown.MAX_FILE >> 20,
        )  # fmt: skip


def draw_problems(now: Shown) -> None:
    """What went wrong, or what to do first."""
    if now.problem:
        st.html(notice(now.problem, "problem"))
    elif now.source is None:
        st.html(notice(START_HERE))


def _attach(now: Shown) -> None:
    values = st.session_state
    remote_shown.attach_typed(now, values["events"], values["replay"], values["api"], values["ranks"])


def _open_file(now: Shown) -> None:
    file = st.session_state["remote_file"]
    if file is not None:
        remote_shown.open_file(now, file.name, file.getvalue())
