"""Send a prompt through the server's API and mark the blocks it caused."""

from __future__ import annotations

import streamlit as st

from engine.event_base import plural
from engine.remote.http import HttpError
from engine.remote.prompt import LONGEST_PROMPT, MOST_TOKENS, Asked, PromptWish, asking
from engine.remote.server import RemoteServer
from views.html_parts import notice
from views.remote_shown import Shown

SECONDS_BETWEEN_LOOKS = 0.3
EXAMPLE = "You are a patient teacher. Answer in one short sentence.\n\nWhat is a page of memory?"


def draw_prompt(now: Shown) -> None:
    """The form, and what came of the last prompt."""
    server = now.server
    if server is None or server.addresses.api is None:
        return
    st.subheader("Send a prompt")
    st.text_area("Prompt for the server", EXAMPLE, key="remote_prompt", max_chars=LONGEST_PROMPT, height=80)
    left, middle, right = st.columns([1, 1, 2], vertical_alignment="bottom")
    with left:
        st.number_input("New tokens at most", 1, MOST_TOKENS, 16, key="remote_max_tokens")
    with middle:
        st.toggle("As chat", True, key="remote_as_chat", help="In the marks the model saw when it learnt to chat.")
    with right:
        st.text_input("API key, if the server wants one", key="remote_api_key", type="password")
    is_busy = now.asking is not None
    st.button("Send", key="send_prompt", disabled=is_busy, on_click=_send, args=(now, server))
    if is_busy:
        _wait_for_answer(now)
    if now.asked is not None:
        _draw_answer(now.asked)


@st.fragment(run_every=SECONDS_BETWEEN_LOOKS)
def _wait_for_answer(now: Shown) -> None:
    answer = now.asking
    if answer is None:
        return
    if not answer.done():
        st.html(notice("The server is answering."))
        return
    now.asking = None
    try:
        now.asked = answer.result()
    except HttpError as error:
        now.problem = str(error)
    st.rerun()


def _send(now: Shown, server: RemoteServer) -> None:
    values = st.session_state
    wish = PromptWish(values["remote_prompt"], values["remote_max_tokens"], values["remote_as_chat"])
    now.problem, now.asked = "", None
    if not wish.prompt.strip():
        now.problem = "The prompt is empty: type at least one word."
        return
    now.asking = asking(server, wish, values["remote_api_key"])


def _draw_answer(asked: Asked) -> None:
    st.text(asked.text)
    stored, found = plural(len(asked.stored), "block"), plural(len(asked.found), "block")
    if asked.is_exact:
        said = f"This prompt and its answer stored {stored} and found {found} already there. They are marked below."
    else:
        said = f"The server names no token ids, so all that is known is time: {stored} stored while it answered."
    st.html(notice(said))
