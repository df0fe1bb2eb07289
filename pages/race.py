"""Experiment: one stream of arrivals into four memories of the same size."""

from __future__ import annotations

import streamlit as st

from course.race.lesson import LESSON
from engine.i18n import N_, _
from views import lesson_page
from views.elements.charts import draw_chart, frame_table
from views.lab import race as this
from views.lab.background import result_of
from views.lab.controls import choose, type_number, type_text
from views.predict import OF_EXPERIMENT
from views.url_state import set_url_values


def draw_controls() -> this.RaceInputs:
    workload = choose(this.KEY, this.WORKLOAD, this.WORKLOAD_NAMES)
    if workload == this.TYPED:
        lines = type_text(this.KEY, this.LINES, this.DEFAULT_LINES, height=180)
    else:
        lines = ""
        with lesson_page.knobs("race_arrivals"):
            num_requests, rate, seed = (type_number(this.KEY, rule) for rule in (this.REQUESTS, this.RATE, this.SEED))
    with lesson_page.knobs(this.KEY):
        num_blocks, block_size, limit = (
            type_number(this.KEY, rule) for rule in (this.BLOCKS, this.BLOCK_SIZE, this.LIMIT)
        )
    if workload == this.TYPED:
        return this.RaceInputs(workload, lines, 0, 0, 0, num_blocks, block_size, limit)
    inputs = this.RaceInputs(workload, lines, num_requests, rate, seed, num_blocks, block_size, limit)
    st.button(_("Edit these arrivals"), key="edit_arrivals", on_click=edit, args=(inputs,))
    return inputs


def edit(inputs: this.RaceInputs) -> None:
    """Put the drawn arrivals into the box."""
    set_url_values(this.KEY, workload=this.TYPED, lines=this.format_arrivals(this.arrivals_of(inputs)))


def draw_memories(lanes: this.Lanes, name: str) -> None:
    """The chosen contiguous memory, and the paged one under it."""
    leader, paged = lanes.frames(name), lanes.frames(this.PAGED)
    value = lesson_page.play(this.KEY, leader, name=this.STEP, default=lanes.last_first_obstacle, share=0.5, parts=())
    lesson_page.play_beside("map_paged", paged, leader, value, share=0.5, parts=())


def draw_details(lanes: this.Lanes) -> None:
    st.html(frame_table(this.summary_frame(lanes), _("The four memories")))
    with st.expander(_("Where the slots went")):
        lesson_page.captions(
            N_(
                "Ours are averages over the steps in which a request waited for memory. The paper's are those "
                "printed in its Fig. 2, from its experiment in section 6.2. Model, workload and lengths "
                "differ, so compare the order of the bars, not their heights. Of its last bar, the paper "
                "prints only one figure."
            ),
            *this.order_sentences(lanes),
            *this.share_sentences(lanes),
            facts={},
        )
        table = this.usage_frame(lanes)
        draw_chart(this.usage_chart(table), table, _("Percent of the memory, ours and the paper's"), key="split")
    with st.expander(_("Over time")):
        measure = choose(this.KEY, this.MEASURE)
        table = this.frame_over_steps(lanes, measure)
        draw_chart(
            this.chart_over_steps(table, measure),
            table,
            _("{measure}, by step").format(measure=_(measure)),
            key="over_time",
        )


parts = lesson_page.begin(
    LESSON,
    _(
        "Which way of allocating memory lets more requests run? The same requests arrive at four "
        "memories of the same size. They differ in one thing: how much is reserved for a request, and "
        "in what pieces."
    ),
    OF_EXPERIMENT,
)
with parts.controls:
    contiguous = choose(this.KEY, this.CONTIGUOUS)
    st.markdown(f"**{contiguous}** {_(this.RULES[contiguous])}. **{this.PAGED}** {_(this.RULES[this.PAGED])}.")
    inputs = draw_controls()
    lanes = result_of(this.KEY, inputs, lambda: this.run_race(inputs))
if lanes:
    with parts.picture:
        draw_memories(lanes, contiguous)
    with parts.notes:
        lesson_page.captions(*this.stop_sentences(lanes), facts={})
    with parts.details:
        draw_details(lanes)
with parts.details:
    lesson_page.end(
        LESSON,
        notice=(
            _(
                "Max reserves room for the longest request allowed (`max_model_len`), for every request, from "
                "its first token."
            ),
            _("Pow2 wastes less inside a region, but leaves gaps between regions that are too small for a request."),
            _("Oracle knows every length in advance. Even so, its slots stay empty until they are written."),
            _(
                "With blocks, almost all memory is used before a request waits. Then a request may have to be "
                "preempted."
            ),
            _("The replies are the same in all memories. Only where keys and values are stored differs."),
        ),
        paper=_(
            "Section 3.1 and Fig. 2 (where memory goes), section 6.1 (the baselines), section 6.2 (what they serve)"
        ),
    )
