"""Time travel: from any step of the run, another future with other settings, and both in one chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from course.messages import Plural, fill
from engine.config import EngineConfig
from engine.i18n import N_, _
from views.elements.charts import draw_chart, line_chart
from views.figures import Figure, figure_rows
from views.html_parts import escaped, figures, notice
from views.lab.background import result_of
from views.live.config import WAYS_TO_MAKE_ROOM, live_config
from views.live.link import viewed_step
from views.live.settings import BLOCK_SIZE, NUM_BLOCKS
from views.live.tool_settings import choose_number
from views.memory_map.component import memory_map
from views.memory_map.frames import Payload, frames_payload
from views.server.engine_session import EngineSession
from views.server.model_registry import ReadyModel, model_registry

if TYPE_CHECKING:
    from engine.inspect.branch import Branch, ComparedSequence, Past, RunUsage

STEP = "branch_step"
_REQUESTED, _PAST, _MAP_STEP = "branch_requested", "branch_past", "branch_map_step"
WAS, BRANCH = N_("Original"), N_("Branch")
FIGURES = (
    Figure(N_("Branched after step"), "{branch.at_step}"),
    Figure(N_("Original: most slots held"), "{was.peak_held_slots}"),
    Figure(N_("Branch: most slots held"), "{future.peak_held_slots}"),
    Figure(N_("Original: last step"), "{was.last_step}"),
    Figure(N_("Branch: last step"), "{future.last_step}"),
    Figure(N_("Branch: preemptions"), "{future.counters.num_preemptions}"),
)
REPEATED = N_(
    "The run was repeated up to step {branch.at_step}, and every event was the same. From there an engine with "
    "the other settings continued. Its KV cache starts empty, so it computes the keys and values again."
)
NOT_REPEATED = N_(
    "Repeated up to step {branch.at_step}, the run gave different events, so the branch has a different past."
)
NOT_COMPLETE = N_("The branch was stopped early: it had too many steps left.")
SAME_WORDS = Plural(
    "seq.num_compared",
    "{seq.seq_id} has the same text in both runs, over the {n} token that both have.",
    "{seq.seq_id} has the same text in both runs, over the {n} tokens that both have.",
)
OTHER_WORDS = N_("{seq.seq_id} has different text in the two runs from token {seq.first_difference} on.")


@dataclass(frozen=True)
class TwoFutures:
    """What one branch gave, ready to be drawn."""

    branch: Branch
    was: RunUsage
    future: RunUsage
    sequences: tuple[ComparedSequence, ...]
    payload: Payload


def draw_time_travel(session: EngineSession) -> None:
    """Where to branch, with what; then both futures."""
    moment, config = session.moment, session.engine.config
    if not moment.step:
        st.html(notice(_("Nothing has happened yet. Add a request and press Step a few times.")))
        return
    wanted = _choose(config, moment.step)
    st.button(_("Branch from here"), key="branch", on_click=partial(_ask, session, st.session_state[STEP], wanted))
    requested, past = st.session_state.get(_REQUESTED), st.session_state.get(_PAST)
    model = model_registry().request(config.model).model
    if requested is None or past is None or model is None or requested[0] != session.frames.trace_id:
        return
    result = result_of("time_travel", requested, partial(_branch, past, model, requested[2], requested[3]))
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
        choose_number(_("Branch after step"), STEP, num_steps + 1)
    with sides[1]:
        block_size = st.number_input(
            _("Block size of the branch"), BLOCK_SIZE.low, BLOCK_SIZE.high, key="branch_block_size"
        )
    with sides[2]:
        num_blocks = st.number_input(
            _("Blocks of the branch"), NUM_BLOCKS.low, NUM_BLOCKS.high, key="branch_num_blocks"
        )
    with sides[3]:
        way = st.selectbox(
            _("Preemption in the branch"), list(WAYS_TO_MAKE_ROOM), format_func=_, key="branch_make_room"
        )
        caching = st.toggle(_("Prefix caching in the branch"), key="branch_prefix_caching")
    return live_config(config.model, int(block_size), int(num_blocks), caching, WAYS_TO_MAKE_ROOM[way])


def _follow_the_map(num_steps: int) -> None:
    """Whoever moves the map's slider wants to branch there."""
    at = viewed_step()
    shown = num_steps if at is None else min(at, num_steps)
    if st.session_state.get(_MAP_STEP) != shown:
        st.session_state[_MAP_STEP] = st.session_state[STEP] = shown


def _ask(session: EngineSession, at_step: int, config: EngineConfig) -> None:
    """Keep the past as it is now: the run may go on while its branch is computed."""
    from engine.inspect.branch import past_of

    with session.between_steps() as engine:
        past = past_of(engine)
    st.session_state[_PAST] = past
    st.session_state[_REQUESTED] = (session.frames.trace_id, len(past.trace), at_step, config)


def _branch(past: Past, model: ReadyModel, at_step: int, config: EngineConfig) -> TwoFutures:
    from engine.inspect.branch import branch_at, compare_sequences, run_usage
    from engine.inspect.scratch import components_factory

    branch = branch_at(past, components_factory(model.weights), at_step, config)
    return TwoFutures(
        branch,
        run_usage(branch.past, 0),
        run_usage(branch.future, at_step),
        compare_sequences(branch.past, branch.future),
        frames_payload(branch.future, first=at_step, title=_("Branch from step {at_step}").format(at_step=at_step)),
    )


def _draw_both(two: TwoFutures) -> None:
    facts = {"branch": two.branch, "was": two.was, "future": two.future}
    st.html(figures(figure_rows(FIGURES, facts)))
    st.html(notice(fill(REPEATED if two.branch.is_past_repeated else NOT_REPEATED, facts)))
    if not two.branch.is_complete:
        st.html(notice(_(NOT_COMPLETE)))
    table = _table(two)
    chart = line_chart(table, N_("Step"), [WAS, BRANCH], _("Slots held"), steps=True)
    table_shown = table.astype(object).where(table.notna(), "–")
    draw_chart(chart, table_shown, _("Slots held after each step"), key="two_futures")
    words = [fill(SAME_WORDS if s.first_difference is None else OTHER_WORDS, {"seq": s}) for s in two.sequences]
    st.html(f'<div class="pv-captions">{"".join(f"<p>{escaped(sentence)}</p>" for sentence in words)}</div>')
    memory_map(two.payload, key="branch_map")


def _table(two: TwoFutures) -> pd.DataFrame:
    """A row a step; a run that is not there at a step has no count."""
    rows = range(max(two.was.last_step, two.future.last_step) + 1)
    return pd.DataFrame(
        {
            N_("Step"): rows,
            WAS: [_held(two.was, step) for step in rows],
            BRANCH: [_held(two.future, step) for step in rows],
        }
    ).astype("Int64")


def _held(future: RunUsage, step: int) -> int | None:
    inside = future.first_step <= step <= future.last_step
    return future.usage[step - future.first_step].num_held_slots if inside else None
