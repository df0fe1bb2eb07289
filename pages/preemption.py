"""Experiment: shrink the pool until a request must give its blocks back; recompute against swap."""

from __future__ import annotations

import streamlit as st

from course.preemption.lesson import LESSON
from engine.i18n import _
from views import lesson_page
from views.elements.charts import draw_chart, frame_table, line_chart, mark_moments
from views.lab import preemption as this
from views.lab.background import result_of
from views.lab.controls import choose_model, slide_number, type_number, type_text
from views.models.backend_banner import backend_banner
from views.models.loading import wait_for_model
from views.predict import OF_EXPERIMENT
from views.url_state import set_url_values

ASKED = "preemption_times_asked"
"""For which inputs times were asked for, and how often."""


def draw_controls() -> tuple[str, str, int, int, int]:
    num_blocks = slide_number(this.KEY, this.POOL)
    text = type_text(this.KEY, this.PROMPTS, this.DEFAULT_PROMPTS, height=122)
    with lesson_page.knobs(this.KEY):
        block_size = type_number(this.KEY, this.BLOCK_SIZE)
        max_tokens = type_number(this.KEY, this.MAX_TOKENS)
    return text, choose_model(this.KEY), num_blocks, block_size, max_tokens


def draw_buttons(preempted: this.Preempted, inputs: this.PreemptionInputs) -> None:
    largest = preempted.largest_that_preempts
    with st.container(horizontal=True, key="preemption_buttons"):
        st.button(
            _("Shrink until one is preempted"), key="shrink", on_click=shrink, args=(largest,),
            disabled=largest is None or largest >= preempted.num_blocks,
        )  # fmt: skip
        st.button(
            _("Measure the times"), key="measure", on_click=ask_for_times, args=(inputs,),
            disabled=not preempted.is_anybody_preempted,
        )  # fmt: skip


def shrink(num_blocks: int) -> None:
    set_url_values(this.KEY, num_blocks=num_blocks)


def ask_for_times(inputs: this.PreemptionInputs) -> None:
    asked, times = st.session_state.get(ASKED, (None, 0))
    st.session_state[ASKED] = (inputs, times + 1 if asked == inputs else 1)


def draw_memories(preempted: this.Preempted) -> None:
    value = lesson_page.play(
        this.KEY, preempted.recompute, name=this.STEP, default=preempted.first_preemption, share=0.5, parts=()
    )
    lesson_page.play_beside("map_swap", preempted.swap, preempted.recompute, value, share=0.5, parts=())


def draw_times(preempted: this.Preempted, inputs: this.PreemptionInputs) -> None:
    """Only when they were asked for: it takes six runs both ways."""
    asked = st.session_state.get(ASKED, (None, 0))
    if asked[0] != inputs:
        return
    cost = result_of(this.TIMES, asked, lambda: (this.measure(model, inputs),))
    if cost is None:
        return
    [measured] = cost
    templates, facts = this.what_it_took(measured)
    lesson_page.captions(*templates, facts=facts)
    if measured is None:
        return
    st.html(frame_table(this.measured_frame(measured), _("What differs between the two ways, in ms")))
    table = this.times_frame(preempted.comparison, measured)
    chart = line_chart(table, this.TIME, (this.RECOMPUTE, this.SWAP), _("ms, median of the runs"))
    mark_moments(chart, this.marks(preempted.comparison))
    draw_chart(chart, table, _("Time of each step in ms, median of the runs"), key="times")


parts = lesson_page.begin(
    LESSON,
    _(
        "What happens when running requests need more blocks than there are? The newest request is "
        "**preempted**: its blocks are freed, and it waits. The paper has two ways to restore them "
        "later, and both cost time."
    ),
    OF_EXPERIMENT,
)
with parts.controls:
    text, chosen, num_blocks, block_size, max_tokens = draw_controls()
    model = wait_for_model(chosen)
    inputs = this.PreemptionInputs(model.weights.name, text, num_blocks, block_size, max_tokens)
    preempted = result_of(this.KEY, inputs, lambda: this.preempt(model, inputs))
    if preempted:
        draw_buttons(preempted, inputs)
if preempted:
    with parts.picture:
        draw_memories(preempted)
    with parts.notes:
        lesson_page.captions(*preempted.verdict(), facts=preempted.facts())
    with parts.details:
        st.html(frame_table(this.costs_frame(preempted.comparison), _("Recompute compared with swap")))
        draw_times(preempted, inputs)
        with st.expander(_("The replies")):
            st.html(this.replies(preempted))
        st.html(backend_banner(preempted.comparison.recompute.trace.info))
with parts.details:
    lesson_page.end(
        LESSON,
        notice=(
            _("First come, first served: the newest request is preempted first, so older ones are not delayed."),
            _(
                "Recompute, as vLLM does today, frees the blocks and later prefills prompt plus reply in one "
                "step. Swap, as in the paper, copies the blocks to CPU memory and back, and computes no token "
                "twice."
            ),
            _("Swap space is as large as the pool here, as in the paper, so there is always room to swap."),
            _(
                "vLLM today only recomputes, and keeps its prefix cache on, so a preempted request often finds its "
                "blocks again. Swapping as shown here is the paper's; vLLM's V1 engine no longer uses it."
            ),
            _("The prefix cache is off on this page: it would find those blocks and hide what recomputing costs."),
        ),
        paper=_("Section 4.5 (swapping and recomputation) and section 7.3, Fig. 19 (which is faster, by block size)"),
    )
