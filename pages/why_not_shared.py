"""Experiment: two prompts of the reader's own, and why they share no more blocks than they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from course.why_not_shared.lesson import LESSON
from engine.i18n import _
from views import lesson_page
from views.figures import figure_rows
from views.html_parts import figures
from views.lab import why_not_shared as this
from views.lab.background import result_of
from views.lab.controls import choose, choose_model, type_number, type_text
from views.models.loading import wait_for_model
from views.predict import OF_EXPERIMENT
from views.url_state import draw_corrections, set_url_values

if TYPE_CHECKING:
    from course.why_not_shared.experiment import SharingAnswer


def draw_prompts() -> tuple[str, str, str, str]:
    lesson_page.examples(this.KEY, this.EXAMPLES)
    first = type_text(this.KEY, this.FIRST, this.DEFAULT_FIRST, height=90)
    first_as = choose(this.KEY, this.FIRST_AS)
    second = type_text(this.KEY, this.SECOND, this.DEFAULT_SECOND, height=90)
    second_as = choose(this.KEY, this.SECOND_AS)
    return first, second, first_as, second_as


def draw_edit(answer: SharingAnswer, second: str) -> None:
    st.header(_("The smallest edit that shares more"))
    if answer.edit is None:
        lesson_page.captions(this.NO_EDIT, facts={})
        return
    lesson_page.captions(this.EDIT, facts=this.facts(answer))
    st.html(this.edited(second, answer.edit))
    st.button(_("Make this edit"), key="make_edit", on_click=make_edit, args=(answer.edit.text,))


def make_edit(text: str) -> None:
    set_url_values(this.KEY, second=text)


parts = lesson_page.begin(
    LESSON,
    _(
        "Two prompts look alike, yet the second gets no prefix cache hit. Why? A prefix cache finds "
        "whole blocks, from the first token on, and only if every token before them is the same. Type "
        "two prompts and see what breaks that."
    ),
    OF_EXPERIMENT,
)
with parts.controls:
    first, second, first_as, second_as = draw_prompts()
    with lesson_page.knobs(this.KEY):
        block_size = type_number(this.KEY, this.BLOCK_SIZE)
        chosen = choose_model(this.KEY)
    model = wait_for_model(chosen)
    inputs = this.SharingInputs(model.weights.name, first, second, first_as, second_as, block_size)
    answer = result_of(this.KEY, inputs, lambda: this.compare(model, inputs))
if answer:
    with parts.controls:
        draw_corrections(this.KEY)
    with parts.picture:
        st.html(figures(figure_rows(this.FIGURES, this.facts(answer))))
        st.html(this.reasons(answer))
        time_saved = st.container()
        st.html(this.blocks_table(answer))
    with time_saved:
        speed = result_of(this.SPEED, model.weights.name, lambda: this.speed_of(model.weights))
        if speed:
            templates, facts = this.time_saved(answer, speed, model.info)
            lesson_page.captions(*templates, facts=facts)
    with parts.notes:
        draw_edit(answer, second)
with parts.details:
    lesson_page.end(
        LESSON,
        notice=(
            _(
                "A space is part of a token. One more space at the start changes the first token, and nothing "
                "after it is shared."
            ),
            _(
                "Put what changes from request to request at the end of a prompt. With a date at the start, "
                "nothing is shared."
            ),
            _("Only full blocks have a hash and can be found. Smaller blocks share more but need more lookups."),
            _(
                "The last token of a prompt is always computed, even if all blocks are cached: its logits are "
                "needed to sample the next."
            ),
            _(
                "What is found is not computed again, so a hit shortens the **time to first token** (TTFT). Servers "
                "report the **prefix cache hit rate**: tokens found, of all tokens looked up."
            ),
        ),
        paper=_("Section 4.4, shared prefix. Finding blocks by a hash of their tokens came later, in vLLM"),
    )
