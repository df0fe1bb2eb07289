"""Capacity: how many tokens and requests a model, a GPU and a precision leave room for, and what runs out first."""

from __future__ import annotations

import streamlit as st

from course.pages import CAPACITY
from engine.i18n import _
from views.serving.capacity import draw_controls, draw_formula, draw_picture
from views.side_by_side import side_by_side
from views.url_state import flush_url

parts = side_by_side(_(CAPACITY.title))
with parts.controls:
    st.markdown(_("Choose a model and a GPU. The same formula reproduces published start-up logs of vLLM and SGLang."))
    plan = draw_controls()
if plan is not None:
    with parts.picture:
        draw_picture(plan)
    with parts.details:
        draw_formula(plan)
flush_url()
