"""Decode a log: every line about memory that vLLM or SGLang printed, explained on one picture."""

from __future__ import annotations

import streamlit as st

from course.pages import DECODE_LOG
from engine.i18n import _
from views.serving.decoded_log import LOG, decoded, draw_lines, draw_notes, draw_picture
from views.serving.log_examples import EXAMPLES
from views.serving.pasted import draw_examples, pasted_text, pick_into
from views.side_by_side import side_by_side

parts = side_by_side(_(DECODE_LOG.title))
with parts.controls:
    st.markdown(
        _(
            "Paste the output of `vllm serve` or SGLang, or the text of `/metrics`. Lines about memory are "
            "explained; other lines are left alone. The text stays in this tab's session: it is not stored, "
            "logged or sent anywhere."
        )
    )
    draw_examples(LOG, EXAMPLES)
    text = pasted_text(LOG, _("Log or metrics"), next(iter(EXAMPLES.values())), height=190)
    pick_into(LOG, _("Or open a log file"), ".log,.txt")
log = decoded(text)
with parts.picture:
    draw_picture(log)
with parts.notes:
    draw_notes(log)
with parts.details:
    draw_lines(log)
