"""Experiment: shrink the pool until a request must give its blocks back; recompute against swap."""

from __future__ import annotations

import streamlit as st

from views import lesson
from views.backend_banner import backend_banner
from views.charts import draw_chart, frame_table, line_chart
from views.course import PREEMPTION
from views.experiments import preemption as this
from views.experiments.asked import result_of
from views.experiments.controls import choose_model, slide_number, type_number, type_text
from views.kept import set_kept
from views.model_loading import wait_for_model
from views.predict import OF_EXPERIMENT, draw_question

ATTEMPT = "preemption_attempt"


def draw_controls() -> tuple[str, str, int, int, int]:
    prompt_side, left, right = st.columns([4, 2, 2], gap="medium")
    with prompt_side:
        text = type_text(this.KEY, this.PROMPTS, this.DEFAULT_PROMPTS, height=122)
    with left:
        model = choose_model(this.KEY)
        block_size = type_number(this.KEY, this.BLOCK_SIZE)
    with right:
        max_tokens = type_number(this.KEY, this.MAX_TOKENS)
    num_blocks = slide_number(this.KEY, this.POOL)
    return text, model, num_blocks, block_size, max_tokens


def draw_buttons(preempted: this.Preempted) -> None:
    largest = preempted.largest_that_preempts
    with st.container(horizontal=True, key="preemption_buttons"):
        st.button(
            "Shrink until someone is preempted", key="shrink", on_click=shrink, args=(largest,),
            disabled=largest is None or largest >= preempted.num_blocks,
        )  # fmt: skip
        st.button("Measure again", key="again", on_click=measure_again)


def shrink(num_blocks: int) -> None:
    set_kept(this.KEY, num_blocks=num_blocks)


def measure_again() -> None:
    st.session_state[ATTEMPT] = st.session_state.get(ATTEMPT, 0) + 1


def draw_costs(preempted: this.Preempted) -> None:
    lesson.beats(*preempted.verdict(), facts=preempted.facts())
    st.html(frame_table(this.costs_frame(preempted.race), "Recompute against swap"))


def draw_memories(preempted: this.Preempted) -> None:
    st.header("Step by step")
    recompute_side, swap_side = st.columns(2, gap="medium")
    with recompute_side:
        st.markdown("**Recompute** gives the blocks back, and runs the tokens again later.")
        value = lesson.scrub(
            this.KEY, preempted.recompute, name=this.STEP, default=preempted.first_preemption, height=260
        )
    with swap_side:
        st.markdown("**Swap** copies the blocks to the CPU's memory, and back later.")
        lesson.play_beside("map_swap", preempted.swap, preempted.recompute, value, height=260)


def draw_times(preempted: this.Preempted) -> None:
    st.header("How long each step took")
    table = this.times_frame(preempted.race)
    chart = line_chart(table, this.TIME, (this.RECOMPUTE, this.SWAP), "ms, measured in this run")
    draw_chart(chart, table, "Time of each step in ms, measured in this run", key="times")


st.title(PREEMPTION.title)
st.markdown(
    "Requests grow while they run, so a pool that was large enough at the start can be too small later. "
    "Then the last to come gives its blocks back. Getting them again has two ways, and both cost something."
)
draw_question(this.KEY, OF_EXPERIMENT)
text, chosen, num_blocks, block_size, max_tokens = draw_controls()
model = wait_for_model(chosen)
attempt = st.session_state.get(ATTEMPT, 0)
inputs = this.Inputs(model.weights.name, text, num_blocks, block_size, max_tokens, attempt)
if preempted := result_of(this.KEY, inputs, lambda: this.preempt(model, inputs)):
    draw_buttons(preempted)
    draw_costs(preempted)
    draw_memories(preempted)
    draw_times(preempted)
    st.header("The replies")
    st.html(this.replies(preempted))
    st.html(backend_banner(preempted.race.recompute.trace.info))
lesson.end(
    PREEMPTION,
    notice=(
        "Whoever came last is put aside first, so those who came before keep their promise.",
        "Recomputing runs the prompt and the reply so far as one prompt, in one step. Swapping runs no token twice.",
        "Swap space is as large as the pool here, as in the paper, so swapping can always be done.",
        "The prefix cache is off: it would find the thrown-away blocks again and hide what recomputing costs.",
    ),
    paper="Section 4.5 (swapping and recomputation) and section 7.3, Fig. 19 (which is faster, by block size)",
)
