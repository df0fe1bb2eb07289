"""Experiment: one stream of arrivals into four memories of the same size."""

from __future__ import annotations

import streamlit as st

from views import lesson
from views.charts import draw_chart, frame_table
from views.course import RACE
from views.experiments import race as this
from views.experiments.asked import result_of
from views.experiments.controls import choose, type_number, type_text
from views.experiments.race_charts import split_chart, time_chart
from views.kept import set_kept
from views.predict import OF_EXPERIMENT, draw_question
from views.url_values import NumberRule


def draw_controls() -> this.Inputs:
    workload = choose(this.KEY, this.WORKLOAD)
    arrival_side, memory_side = st.columns(2, gap="large")
    with memory_side:
        num_blocks, block_size, limit = draw_numbers(this.BLOCKS, this.BLOCK_SIZE, this.LIMIT)
    with arrival_side:
        if workload == this.TYPED:
            lines = type_text(this.KEY, this.LINES, this.DEFAULT_LINES, height=180)
            return this.Inputs(workload, lines, 0, 0, 0, num_blocks, block_size, limit)
        num_requests, rate, seed = draw_numbers(this.REQUESTS, this.RATE, this.SEED)
    inputs = this.Inputs(workload, "", num_requests, rate, seed, num_blocks, block_size, limit)
    with arrival_side:
        st.button("Type these in, to change them", key="edit_arrivals", on_click=edit, args=(inputs,))
    return inputs


def draw_numbers(*rules: NumberRule) -> list[int]:
    numbers = []
    for column, rule in zip(st.columns(len(rules)), rules, strict=True):
        with column:
            numbers.append(type_number(this.KEY, rule))
    return numbers


def edit(inputs: this.Inputs) -> None:
    """Put the drawn arrivals into the box."""
    set_kept(this.KEY, workload=this.TYPED, lines=this.as_lines(this.arrivals_of(inputs)))


def draw_stops(lanes: this.Lanes) -> None:
    st.header("Each stops at its own moment")
    lesson.beats(*this.stops(lanes), facts={})
    st.html(frame_table(this.lanes_frame(lanes), "The four lanes"))


def draw_split(lanes: this.Lanes) -> None:
    st.header("Where the slots went")
    lesson.beats(
        "Ours are averages over the steps in which a request waited for memory. The paper's are those printed in its "
        "Fig. 2, from its experiment of section 6.2: another model and workload, so the bars are alike and not equal. "
        "Of its last bar one figure is printed.",
        *this.splits(lanes),
        facts={},
    )
    table = this.split_frame(lanes)
    draw_chart(split_chart(table), table, "Percent of the memory, ours and the paper's", key="split")


def draw_time(lanes: this.Lanes) -> None:
    st.header("Over time")
    measure = choose(this.KEY, this.MEASURE)
    table = this.over_time(lanes, measure)
    draw_chart(time_chart(table, measure), table, f"{measure}, by step", key="over_time")


def draw_memories(lanes: this.Lanes) -> None:
    st.header("The four memories, step by step")
    max_side, pow2_side, oracle_side, paged_side = (*st.columns(2), *st.columns(2))
    leader = lanes.frames(0)
    with max_side:
        draw_name(lanes, 0)
        value = lesson.scrub(this.KEY, leader, name=this.STEP, default=lanes.first_stop, height=200)
    for index, side in enumerate((pow2_side, oracle_side, paged_side), 1):
        with side:
            draw_name(lanes, index)
            lesson.play_beside(f"map_{lanes.lanes[index].name}", lanes.frames(index), leader, value, height=200)


def draw_name(lanes: this.Lanes, index: int) -> None:
    name = lanes.lanes[index].name
    st.markdown(f"**{name}** {this.RULES[name]}.")


st.title(RACE.title)
st.markdown(
    "One stream of requests into four memories of the same size. "
    "They differ in one thing only: how much is set aside for a request, and in what pieces."
)
draw_question(this.KEY, OF_EXPERIMENT)
inputs = draw_controls()
if lanes := result_of(this.KEY, inputs, lambda: this.run_race(inputs)):
    draw_stops(lanes)
    draw_split(lanes)
    draw_memories(lanes)
    draw_time(lanes)
lesson.end(
    RACE,
    notice=(
        "Max stops first: it holds room for the longest request, for everybody, from the first token on.",
        "Pow2 wastes less inside, and breaks memory into pieces that fit nobody.",
        "Oracle knows every length in advance, and still keeps slots empty until they are used.",
        "Pages fill almost all of memory before anybody waits. Then somebody may have to give blocks back.",
        "The replies are the same in all lanes. Only where keys and values may lie differs.",
    ),
    paper="Section 3.1 and Fig. 2 (where memory goes), section 6.1 (the baselines), section 6.2 (what they serve)",
)
