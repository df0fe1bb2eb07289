"""Attach to a server: the prefix cache of a running vLLM, SGLang or our own server, live, from what it publishes."""

from __future__ import annotations

import streamlit as st

from views.course import REMOTE_SERVER
from views.remote_controls import draw_addresses, draw_problems, rules
from views.remote_export import draw_export
from views.remote_moment import draw_choices
from views.remote_picture import draw_live, draw_moment
from views.remote_prompt import draw_prompt
from views.remote_shown import shown
from views.url_values import correct_address, draw_notes

correct_address(rules())
now = shown()
st.title(REMOTE_SERVER.title)
st.markdown(
    "Servers tell which blocks become findable and which are given up. "
    "They do not tell where a block lies or who holds it; what is not told is shown as unknown."
)
draw_addresses(now)
draw_notes()
draw_problems(now)
if now.source is not None:
    step, words = draw_choices(now)
    draw_prompt(now)
    if step is None:
        draw_live(now, words)
    else:
        draw_moment(now, step, words)
    draw_export(now)
