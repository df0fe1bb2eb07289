"""Experiment: the reader's prompts through contiguous and paged keys and values; tokens, logits and memory compared."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from course.equation.lesson import LESSON
from engine.i18n import _
from views import lesson_page
from views.figures import figure_rows
from views.html_parts import figures
from views.lab import equation as this
from views.lab.background import result_of
from views.lab.controls import choose, choose_model, type_number, type_text
from views.models.backend_banner import backend_banner
from views.models.loading import wait_for_model
from views.predict import OF_EXPERIMENT


def draw_controls() -> this.EquationInputs:
    """What is asked for; the model by the name that was chosen."""
    lesson_page.examples(this.KEY, this.EXAMPLES)
    text = type_text(this.KEY, this.PROMPTS, this.DEFAULT_PROMPTS, height=100)
    numbers = choose(this.KEY, this.NUMBERS)
    with lesson_page.knobs(this.KEY):
        block_size = type_number(this.KEY, this.BLOCK_SIZE)
        max_tokens = type_number(this.KEY, this.MAX_TOKENS)
        reserved = type_number(
            this.KEY,
            this.RESERVED,
            _("Contiguous layout: the most tokens that a prompt and its reply may have together."),
        )
    return this.EquationInputs(choose_model(this.KEY), text, max_tokens, block_size, reserved, numbers)


parts = lesson_page.begin(
    LESSON,
    _(
        "Does paging change what a model answers? It changes where keys and values are stored, not "
        "what attention computes. Try your own prompts: both layouts run, and every logit is "
        "compared."
    ),
    OF_EXPERIMENT,
)
with parts.controls:
    asked = draw_controls()
    model = wait_for_model(asked.model)
    inputs = replace(asked, model=model.weights.name)
    both = result_of(this.KEY, inputs, lambda: this.compare(model, inputs))
if both:
    with parts.picture:
        value = lesson_page.play(this.KEY, both.contiguous, name=this.STEP, default=both.opening, share=0.45, parts=())
        lesson_page.play_beside("map_paged", both.paged, both.contiguous, value, share=0.55, parts=())
    with parts.notes:
        lesson_page.captions(*both.verdict(), facts=both.facts())
    with parts.details:
        st.html(figures(figure_rows(this.FIGURES, both.facts())))
        with st.expander(_("The replies, token by token")):
            for prompt, compared in zip(both.prompts, both.report.prompts, strict=True):
                st.html(this.text_line(prompt, compared) + this.tokens_table(both, compared))
        st.html(backend_banner(both.report.paged_trace.info))
with parts.details:
    lesson_page.end(
        LESSON,
        notice=(
            _(
                "The keys and values are the same numbers, stored in another place. Scores, softmax and "
                "weighted sum do not depend on the place."
            ),
            _(
                "The logits are not equal to the last bit: two correct programs add in different orders. "
                "Lower precision rounds more, and then the order of two nearly equal logits can change."
            ),
            _(
                "In blocks, a request holds what it has written, rounded up to whole blocks. In a contiguous "
                "region, it holds all that it might write."
            ),
            _("Try block sizes 1 and 32. The tokens stay the same; only the number of empty slots changes."),
        ),
        paper=_("Section 4.1, equations 2 to 4: attention computed block by block"),
    )
