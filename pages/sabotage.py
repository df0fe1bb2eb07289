"""Experiment: break one thing in a scratch engine, beside a healthy one."""

from __future__ import annotations

import streamlit as st

from views import lesson
from views.backend_banner import backend_banner
from views.course import SABOTAGE
from views.experiments import sabotage as this
from views.experiments.asked import result_of
from views.experiments.controls import choose, choose_model_and_block_size, type_text
from views.html_parts import figures
from views.model_loading import wait_for_model
from views.predict import OF_EXPERIMENT, draw_question
from views.told import told_figures


def draw_deeds() -> str:
    deed = choose(this.KEY, this.DEED, {name: this.saboteur_of(name).title for name in this.DEEDS})
    saboteur = this.saboteur_of(deed)
    lesson.beats(saboteur.sentence, saboteur.meaning, facts={})
    return deed


def draw_outcome(broken: this.Broken) -> None:
    facts = broken.facts()
    st.html(figures(told_figures(this.FIGURES, facts)))
    lesson.beats(*broken.verdict(), facts=facts)
    st.html(this.replies(broken))
    st.header("Which read touched which block")
    st.html(this.reads_table(broken))
    st.header("The broken engine's memory")
    lesson.beats(*broken.about_the_log(), facts=facts)
    lesson.scrub(this.KEY, broken.picture, name=this.STEP, default=broken.first_step_to_see, height=300)
    st.html(backend_banner(broken.report.trace.info))


st.title(SABOTAGE.title)
st.markdown(
    "A paged engine stands on a few rules. Break one of them, and see what attention reads then. "
    "Two scratch engines run the same scene; only one of them is sabotaged."
)
draw_question(this.KEY, OF_EXPERIMENT)
chosen, block_size = choose_model_and_block_size(this.KEY, this.BLOCK_SIZE)
model = wait_for_model(chosen)
deed = draw_deeds()
prompt = type_text(this.KEY, this.PROMPT, this.DEFAULT_PROMPT)
inputs = this.Inputs(model.weights.name, deed, prompt, block_size)
if broken := result_of(this.KEY, inputs, lambda: this.break_engine(model, inputs)):
    draw_outcome(broken)
lesson.end(
    SABOTAGE,
    notice=(
        "Nothing crashes when a read goes wrong. Numbers come back, and the reply goes on, confidently.",
        "The log alone does not show every fault. The watch here stands in front of the kernels and sees each slot.",
        "The same checks run after every step in this project's tests.",
        "A reply may survive a fault: one wrong key among many can leave the likeliest token where it was.",
    ),
    paper="Sections 4.2 to 4.4: what tables, reference counts and copy-on-write promise",
)
