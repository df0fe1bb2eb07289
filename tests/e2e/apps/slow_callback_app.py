"""Two buttons whose callbacks note what they do; one takes its time. It says how many callbacks there were at once."""

from __future__ import annotations

import threading
import time

import streamlit as st

from views.server.streamlit_internals import finish_callbacks_before_rerun

SECONDS = 1.0


class Callbacks:
    def __init__(self) -> None:
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def begin(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def end(self) -> None:
        with self.lock:
            self.now -= 1


@st.cache_resource
def callbacks() -> Callbacks:
    """Made once a server, which is also when the server is prepared."""
    finish_callbacks_before_rerun()
    return Callbacks()


def act_slowly() -> None:
    st.session_state["log"] = [*st.session_state["log"], "slow begins"]
    callbacks().begin()
    time.sleep(SECONDS)
    callbacks().end()
    st.session_state["log"] = [*st.session_state["log"], "slow ends"]


def act_fast() -> None:
    callbacks().begin()
    st.session_state["log"] = [*st.session_state["log"], "fast"]
    callbacks().end()


st.session_state.setdefault("log", [])
callbacks()
st.button("Slow", on_click=act_slowly)
st.button("Fast", on_click=act_fast)
st.text(f"log: {', '.join(st.session_state['log'])}")
st.text(f"at most {callbacks().most} at once")
