"""Experiment: the reader's prompts through contiguous and paged keys and values; tokens, logits and memory compared."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from views import lesson
from views.backend_banner import backend_banner
from views.course import EQUATION
from views.experiments import equation as this
from views.experiments.asked import result_of
from views.experiments.controls import choose, choose_model, type_number, type_text
from views.html_parts import figures
from views.model_loading import wait_for_model
from views.predict import OF_EXPERIMENT, draw_question
from views.told import told_figures


def draw_controls() -> this.Inputs:
    """What is asked for; the model by the name that was chosen."""
    lesson.examples(this.KEY, this.EXAMPLES)
    prompt_side, left, right = st.columns([4, 2, 2], gap="medium")
    with prompt_side:
        text = type_text(this.KEY, this.PROMPTS, this.DEFAULT_PROMPTS, height=122)
        numbers = choose(this.KEY, this.NUMBERS)
    with left:
        model = choose_model(this.KEY)
        max_tokens = type_number(this.KEY, this.MAX_TOKENS)
    with right:
        block_size = type_number(this.KEY, this.BLOCK_SIZE)
        reserved = type_number(this.KEY, this.RESERVED, "Contiguous: how long a prompt and its reply may become.")
    return this.Inputs(model, text, max_tokens, block_size, reserved, numbers)


def draw_comparison(both: this.Comparison) -> None:
    st.html(backend_banner(both.report.paged_trace.info))
    st.html(figures(told_figures(this.FIGURES, both.facts())))
    lesson.beats(*both.verdict(), facts=both.facts())
    for prompt, compared in zip(both.prompts, both.report.prompts, strict=True):
        st.html(this.text_line(prompt, compared) + this.tokens_table(both, compared))
    st.header("Where the keys and values lay")
    value = lesson.scrub(this.KEY, both.contiguous, name=this.STEP, default=both.fullest, height=240)
    lesson.play_beside("map_paged", both.paged, both.contiguous, value, height=240)


st.title(EQUATION.title)
st.markdown(
    "Paging moves keys and values about. It does not change what attention computes with them. "
    "Try it on your own prompts: both layouts run, and every score is compared."
)
draw_question(this.KEY, OF_EXPERIMENT)
asked = draw_controls()
model = wait_for_model(asked.model)
inputs = replace(asked, model=model.weights.name)
if both := result_of(this.KEY, inputs, lambda: this.compare(model, inputs)):
    draw_comparison(both)
lesson.end(
    EQUATION,
    notice=(
        "The keys and values are the same numbers in another place. Scores, softmax and sum do not ask where.",
        "The logits are not equal to the last bit: two correct programs add in different orders. "
        "Coarser numbers round more, on either side, and then a close call can go either way.",
        "Blocks hold what was written and one tail each. Reservations hold what might be written.",
        "Try blocks of 1 and of 32. The tokens stay; only the tails change.",
    ),
    paper="Section 4.1, equations 2 to 4: attention computed block by block",
)
