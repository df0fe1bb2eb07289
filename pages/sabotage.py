"""Experiment: break one thing in a scratch engine, beside a healthy one."""

from __future__ import annotations

import streamlit as st

from course.sabotage.lesson import LESSON
from engine.i18n import _
from views import lesson_page
from views.figures import figure_rows
from views.html_parts import figures
from views.lab import sabotage as this
from views.lab.background import result_of
from views.lab.controls import choose, choose_model, type_number, type_text
from views.models.backend_banner import backend_banner
from views.models.loading import wait_for_model
from views.predict import OF_EXPERIMENT


def draw_faults() -> str:
    """The choice of a fault and what it does. Returns its key."""
    key = choose(this.KEY, this.FAULT, {key: _(fault.title) for key, fault in this.FAULT_OF.items()})
    fault = this.FAULT_OF[key]
    lesson_page.captions(fault.sentence, facts={})
    return key


parts = lesson_page.begin(
    LESSON,
    _(
        "What happens when a paged engine has a bug? Two engines run the same requests, and a fault "
        "is injected into one of them. See what attention reads then, and which check detects the "
        "fault."
    ),
    OF_EXPERIMENT,
)
with parts.controls:
    fault = draw_faults()
    prompt = type_text(this.KEY, this.PROMPT, this.DEFAULT_PROMPT)
    with lesson_page.knobs(this.KEY):
        block_size = type_number(this.KEY, this.BLOCK_SIZE)
        chosen = choose_model(this.KEY)
    model = wait_for_model(chosen)
    inputs = this.FaultInputs(model.weights.name, fault, prompt, block_size)
    injection = result_of(this.KEY, inputs, lambda: this.run_fault_injection(model, inputs))
if injection:
    facts = injection.facts()
    with parts.picture:
        lesson_page.play(
            this.KEY, injection.picture, name=this.STEP, default=injection.first_step_to_see, parts=("tables",)
        )
    with parts.notes:
        st.html(figures(figure_rows(this.FIGURES, facts)))
        lesson_page.captions(
            this.FAULT_OF[fault].meaning, *injection.verdict(), *injection.about_the_log(), facts=facts
        )
    with parts.details:
        st.html(this.replies(injection))
        with st.expander(_("Wrong reads: which block, and what it held")):
            st.html(this.reads_table(injection))
        st.html(backend_banner(injection.report.trace.info))
with parts.details:
    lesson_page.end(
        LESSON,
        notice=(
            _("A wrong read does not crash anything. It returns numbers, and the reply continues."),
            _(
                "The trace alone does not show every fault. Here every read and write of a slot is recorded "
                "before it reaches the kernels."
            ),
            _("The same checks run after every step in this project's tests."),
            _(
                "A reply can be right despite a fault: one wrong key among many may not change which token is "
                "most likely."
            ),
        ),
        paper=_("Sections 4.2 to 4.4: what block tables, reference counts and copy-on-write guarantee"),
    )
