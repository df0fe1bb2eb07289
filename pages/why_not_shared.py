"""Experiment: two prompts of the reader's own, and why they share no more blocks than they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from views import lesson
from views.course import WHY_NOT_SHARED
from views.experiments import why_not_shared as this
from views.experiments.asked import result_of
from views.experiments.controls import choose, choose_model_and_block_size, type_text
from views.html_parts import figures
from views.kept import draw_corrections, set_kept
from views.model_loading import wait_for_model
from views.predict import OF_EXPERIMENT, draw_question
from views.told import told_figures

if TYPE_CHECKING:
    from engine.lab.why_not_shared import SharingAnswer


def draw_prompts() -> tuple[str, str, str, str]:
    lesson.examples(this.KEY, this.EXAMPLES)
    first_side, second_side = st.columns(2, gap="medium")
    with first_side:
        first = type_text(this.KEY, this.FIRST, this.DEFAULT_FIRST, height=90)
        first_as = choose(this.KEY, this.FIRST_AS)
    with second_side:
        second = type_text(this.KEY, this.SECOND, this.DEFAULT_SECOND, height=90)
        second_as = choose(this.KEY, this.SECOND_AS)
    return first, second, first_as, second_as


def draw_answer(answer: SharingAnswer, second: str) -> None:
    facts = this.facts(answer)
    st.html(figures(told_figures(this.FIGURES, facts)))
    st.html(this.reasons(answer))
    st.html(this.blocks_table(answer))
    st.header("The smallest edit that shares one more block")
    if answer.edit is None:
        lesson.beats(this.NO_EDIT, facts={})
        return
    lesson.beats(this.EDIT, facts=facts)
    st.html(this.edited(second, answer.edit))
    st.button("Make this edit", key="make_edit", on_click=make_edit, args=(answer.edit.text,))


def make_edit(text: str) -> None:
    set_kept(this.KEY, second=text)


st.title(WHY_NOT_SHARED.title)
st.markdown(
    "A prefix cache finds whole blocks, from the first token on, and only when every token before them is the same. "
    "Small things break that. Type two prompts and see which."
)
draw_question(this.KEY, OF_EXPERIMENT)
first, second, first_as, second_as = draw_prompts()
chosen, block_size = choose_model_and_block_size(this.KEY, this.BLOCK_SIZE)
model = wait_for_model(chosen)
inputs = this.Inputs(model.weights.name, first, second, first_as, second_as, block_size)
if answer := result_of(this.KEY, inputs, lambda: this.compare(model, inputs)):
    draw_corrections(this.KEY)
    draw_answer(answer, second)
lesson.end(
    WHY_NOT_SHARED,
    notice=(
        "A blank is part of a token. One more at the start, and all tokens behind it are other tokens.",
        "What changes from request to request belongs at the end of a prompt: a date at the start shares nothing.",
        "Only full blocks have a name to be found by. Smaller blocks find more of a prompt, and cost more look-ups.",
        "The last token of a prompt is always computed, even when everything is in the cache.",
    ),
    paper="Section 4.4, shared prefix. Finding blocks by their content is vLLM's later way, which servers use today",
)
