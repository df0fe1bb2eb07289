"""A box for a long text of the reader's own, with examples to begin with. The text lives in the tab's session only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from engine.i18n import _
from views.elements.text_box import text_box
from views.html_parts import notice
from views.trace.file_picker import pick_file, taken_file
from views.url_values import TextRule, correct_typed


def pasted_text(rule: TextRule, label: str, default: str, *, height: int) -> str:
    """Draw the box and return its text, which the tab remembers over other pages."""
    kept = _kept(rule)
    if rule.key not in st.session_state:
        st.session_state[rule.key] = st.session_state.get(kept, default)
    text_box(rule, label, default, height=height)
    text = str(st.session_state[rule.key])
    st.session_state[kept] = text
    return text


def pick_into(rule: TextRule, label: str, accept: str) -> None:
    """Draw a picker of a file whose text goes into the box, and why a picked one cannot be used."""
    pick_file(label, accept, key=f"{rule.key}_file", on_pick=partial(_take, rule))
    if problem := st.session_state.get(f"{rule.key}_problem"):
        st.html(notice(problem, "problem"))


def draw_examples(rule: TextRule, examples: Mapping[str, str]) -> None:
    """A button an example: name, marked for translation -> the text that it puts into the box."""
    with st.container(horizontal=True, key=f"examples_{rule.key}"):
        for number, (name, text) in enumerate(examples.items()):
            st.button(_(name), key=f"example_{rule.key}_{number}", on_click=partial(_put, rule, text))


def _take(rule: TextRule) -> None:
    file = taken_file(f"{rule.key}_file")
    if file is None:
        return
    st.session_state[f"{rule.key}_problem"] = file.problem
    if not file.problem:
        st.session_state[rule.key] = file.text
        correct_typed(rule)


def _put(rule: TextRule, text: str) -> None:
    st.session_state[rule.key] = text


def _kept(rule: TextRule) -> str:
    """The key of the text itself: Streamlit drops that of a box when its page is left."""
    return f"{rule.key}_kept"
