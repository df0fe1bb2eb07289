"""A button whose callback counts, beside four fragments that rerun by themselves."""

from __future__ import annotations

import streamlit as st

from views.server.streamlit_internals import ignore_clicks_in_fragment_reruns


@st.cache_resource
def prepare() -> None:
    """Once a server."""
    ignore_clicks_in_fragment_reruns()


def count() -> None:
    st.session_state["num_clicks"] += 1


def draw_clock(number: int) -> None:
    st.text(f"clock {number}")


prepare()
st.session_state.setdefault("num_clicks", 0)
st.button("Count", on_click=count)
st.text(f"clicks: {st.session_state['num_clicks']}")
for number in range(4):
    st.fragment(draw_clock, run_every=0.5, key=f"clock_{number}")(number)
