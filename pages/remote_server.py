"""Attach to a server: the prefix cache of a running vLLM, SGLang or our own server, live, from what it publishes."""

from __future__ import annotations

import streamlit as st

from course.pages import REMOTE_SERVER
from engine.i18n import _
from views.remote.controls import draw_addresses, draw_choices, draw_export, draw_problems, draw_prompt, rules
from views.remote.picture import draw_live, draw_moment
from views.remote.viewed_source import viewed_source
from views.url_values import correct_url, draw_notes

correct_url(rules())
viewed = viewed_source()
st.title(_(REMOTE_SERVER.title))
st.markdown(
    _(
        "Servers publish which blocks enter the prefix cache and which are evicted. "
        "They do not publish where a block lies or which request holds it; that is shown as unknown."
    )
)
draw_addresses(viewed)
draw_notes(rules())
draw_problems(viewed)
if viewed.source is not None:
    step, vocabulary = draw_choices(viewed)
    draw_prompt(viewed)
    if step is None:
        draw_live(viewed, vocabulary)
    else:
        draw_moment(viewed, step, vocabulary)
    draw_export(viewed)
