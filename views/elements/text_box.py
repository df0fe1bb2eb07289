"""Boxes for text of the reader's own. A text over the limit is cut, that is said below, and the length is counted.

Streamlit's own limit (`max_chars`) drops a longer paste without a word, and the page goes on with the text before it.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st

from engine.i18n import _
from views.html_parts import small
from views.url_values import TextRule, correct_typed, draw_note


def text_box(
    rule: TextRule, label: str, default: str, *, height: int = 68, bind: Literal["query-params"] | None = None
) -> None:
    """The value is under `rule.key` in the session, never longer than `rule.longest` once its callback has run."""
    st.text_area(label, default, key=rule.key, height=height, bind=bind, on_change=correct_typed, args=(rule,))
    draw_length(str(st.session_state.get(rule.key, default)), rule.longest)
    draw_note(rule.key)


def draw_length(text: str, longest: int) -> None:
    """How many characters a box has room for, and how many are in it."""
    st.html(small(_("{num_text:,} of {longest:,} characters").format(num_text=len(text), longest=longest)))
