"""From your traffic: the prefix-cache hit rate of a file's requests, by the size of the pool and of a block."""

from __future__ import annotations

import streamlit as st

from course.pages import TRAFFIC
from engine.i18n import _
from views.serving import traffic as this
from views.serving.pasted import draw_examples
from views.side_by_side import side_by_side

parts = side_by_side(_(TRAFFIC.title))
with parts.controls:
    st.markdown(
        _(
            "Prompts as JSONL or ShareGPT, a trace of hash ids, a CSV of lengths, or the options of vLLM's "
            "benchmark. The text stays in this tab's session: it is not stored, logged or sent anywhere."
        )
    )
    draw_examples(this.TRAFFIC, this.EXAMPLES)
    counts = this.draw_input()
if counts is not None:
    with parts.picture:
        this.draw_picture(counts)
    with parts.notes:
        this.draw_shared_prefix(counts)
    with parts.details:
        this.draw_engine_count(counts)
