"""Time travel: from any step of the run, another future with other settings, and both in one chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from engine.config import EngineConfig
from views.charts import draw_chart, line_chart
from views.engine_session import EngineSession
from views.experiments.asked import result_of
from views.frames import Payload, frames_payload
from views.html_parts import escaped, figures, notice
from views.lab_choice import choose_number
from views.live_config import live_config
from views.live_link import step_looked_at
from views.live_settings import BLOCK_SIZE, NUM_BLOCKS, WAYS_TO_MAKE_ROOM
from views.memory_map import memory_map
from views.server import ReadyModel, model_shelf
from views.told import Figure, tell, told_figures

if TYPE_CHECKING:
    from engine.lab.branch import Branch, Past
    from engine.lab.two_futures import Future, SequenceInBoth

STEP = "branch_step"
_WISH, _PAST, _MAP_STEP = "branch_wish", "branch_past", "branch_map_step"
WAS, BRANCH = "As it was", "The branch"
FIGURES = (
    Figure("Branched after step", "{branch.at_step}"),
    Figure("As it was: slots held at most", "{was.peak_held_slots}"),
    Figure("The branch: slots held at most", "{future.peak_held_slots}"),
    Figure("As it was: last step", "{was.last_step}"),
    Figure("The branch: last step", "{future.last_step}"),
    Figure("The branch: preemptions", "{future.counters.num_preemptions}"),
)
REPEATED = (
    "The life of this engine was run again up to step {branch.at_step}, and every event was the same. "
    "Then an engine with the other settings took over. Its keys and values start empty, so it computes them once more."
)
NOT_REPEATED = "Run again, the life up to step {branch.at_step} was not the same, so the branch has another past."
NOT_COMPLETE = "The branch was stopped before its end: it had too many steps to go."
SAME_WORDS = "{seq.seq_id} says the same in both, as far as both go: {seq.num_common_tokens:token}."
OTHER_WORDS = "{seq.seq_id} parts at token {seq.parts_at}: from there on the two runs say something else."


@dataclass(frozen=True)
class TwoFutures:
    """What one branch gave, ready to be drawn."""

    branch: Branch
    was: Future
    future: Future
    sequences: tuple[SequenceInBoth, ...]
    payload: Payload


def draw_time_travel(session: EngineSession) -> None:
    """Where to branch, with what; then both futures."""
    moment, config = session.moment, session.engine.config
    if not moment.step:
        st.html(notice("Nothing has happened yet. Add a request and press Step a few times."))
        return
    wanted = _choose(config, moment.step)
    st.button("Branch from here", key="branch", on_click=partial(_ask, session, st.session_state[STEP], wanted))
    wish, past = st.session_state.get(_WISH), st.session_state.get(_PAST)
    model = model_shelf().ask(config.model).model
    if wish is None or past is None or model is None or wish[0] != session.frames.trace_id:
        return
    result = result_of("time_travel", wish, partial(_travel, past, model, wish[2], wish[3]))
    if result is not None:
        _draw_both(result)


def _choose(config: EngineConfig, num_steps: int) -> EngineConfig:
    """The step and the settings of the branch; at first, those of the run."""
    ways = {mode: name for name, mode in WAYS_TO_MAKE_ROOM.items()}
    st.session_state.setdefault("branch_block_size", config.block_size)
    st.session_state.setdefault("branch_num_blocks", config.num_blocks)
    st.session_state.setdefault("branch_make_room", ways[config.preemption_mode])
    st.session_state.setdefault("branch_prefix_caching", config.enable_prefix_caching)
    _follow_the_map(num_steps)
    sides = st.columns(4)
    with sides[0]:
        choose_number("Branch after step", STEP, num_steps + 1)
    with sides[1]:
        block_size = st.number_input("Block size there", BLOCK_SIZE.low, BLOCK_SIZE.high, key="branch_block_size")
    with sides[2]:
        num_blocks = st.number_input("Blocks there", NUM_BLOCKS.low, NUM_BLOCKS.high, key="branch_num_blocks")
    with sides[3]:
        way = st.selectbox("When memory is short there", list(WAYS_TO_MAKE_ROOM), key="branch_make_room")
        caching = st.toggle("Prefix caching there", key="branch_prefix_caching")
    return live_config(config.model, int(block_size), int(num_blocks), caching, WAYS_TO_MAKE_ROOM[way])


def _follow_the_map(num_steps: int) -> None:
    """Whoever moves the map's slider wants to branch there."""
    at = step_looked_at()
    shown = num_steps if at is None else min(at, num_steps)
    if st.session_state.get(_MAP_STEP) != shown:
        st.session_state[_MAP_STEP] = st.session_state[STEP] = shown


def _ask(session: EngineSession, at_step: int, config: EngineConfig) -> None:
    """Keep the past as it is now: the run may go on while its branch is computed."""
    from engine.lab.branch import past_of

    with session.between_steps() as engine:
        past = past_of(engine)
    st.session_state[_PAST] = past
    st.session_state[_WISH] = (session.frames.trace_id, len(past.trace), at_step, config)


def _travel(past: Past, model: ReadyModel, at_step: int, config: EngineConfig) -> TwoFutures:
    from engine.lab.branch import branch_at
    from engine.lab.scratch import parts_maker
    from engine.lab.two_futures import future_of, sequences_in_both

    branch = branch_at(past, parts_maker(model.weights), at_step, config)
    return TwoFutures(
        branch,
        future_of(branch.past, 0),
        future_of(branch.future, at_step),
        sequences_in_both(branch.past, branch.future),
        frames_payload(branch.future, first=at_step, title=f"The branch from step {at_step}"),
    )


def _draw_both(two: TwoFutures) -> None:
    facts = {"branch": two.branch, "was": two.was, "future": two.future}
    st.html(figures(told_figures(FIGURES, facts)))
    st.html(notice(tell(REPEATED if two.branch.is_past_repeated else NOT_REPEATED, facts)))
    if not two.branch.is_complete:
        st.html(notice(NOT_COMPLETE))
    table = _table(two)
    chart = line_chart(table, "Step", [WAS, BRANCH], "Slots held", steps=True)
    told = table.astype(object).where(table.notna(), "–")
    draw_chart(chart, told, "Slots held after each step", key="two_futures")
    words = [tell(SAME_WORDS if s.parts_at is None else OTHER_WORDS, {"seq": s}) for s in two.sequences]
    st.html(f'<div class="pv-beats">{"".join(f"<p>{escaped(sentence)}</p>" for sentence in words)}</div>')
    memory_map(two.payload, key="branch_map")


def _table(two: TwoFutures) -> pd.DataFrame:
    """A row a step; a run that is not there at a step has no count."""
    rows = range(max(two.was.last_step, two.future.last_step) + 1)
    return pd.DataFrame(
        {
            "Step": rows,
            WAS: [_held(two.was, step) for step in rows],
            BRANCH: [_held(two.future, step) for step in rows],
        }
    ).astype("Int64")


def _held(future: Future, step: int) -> int | None:
    inside = future.first_step <= step <= future.last_step
    return future.usage[step - future.first_step].num_held_slots if inside else None
