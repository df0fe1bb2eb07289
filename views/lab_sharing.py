"""Forks, copies and frees of the live run, step by step: counts that fall as a copy is made, beams that die."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.trace import Trace
from views.engine_session import EngineSession
from views.frames import frames_payload
from views.html_parts import escaped, figures, notice
from views.live_link import step_looked_at
from views.memory_map import memory_map
from views.told import Figure, told_figures

if TYPE_CHECKING:
    from engine.lab.sharing_account import Entry

STEP, _MAP_STEP = "sharing_step", "sharing_map_step"
NOTHING_YET = (
    "Nothing is shared yet. Set Samples to 2 or more (or Beams, under More settings), add a request and press Step."
)
FIGURES = (
    Figure("Forks so far", "{totals.num_forks}"),
    Figure("Copies so far", "{totals.num_copies}"),
    Figure("Copies that left one holder", "{totals.num_falls_to_one}"),
    Figure("Beams that died", "{totals.num_deaths}"),
    Figure("Blocks taken over", "{totals.num_inherited}"),
)
NAMES = {
    "fork": "Fork",
    "share": "One more holder",
    "copy": "Copied before a write",
    "death": "A beam dies",
    "free": "Let go",
    "inherit": "Taken over",
}
SLOWLY = "The step in slow motion, one frame for each thing that happens to memory. It stands where the step begins."


def draw_sharing(session: EngineSession) -> None:
    from engine.lab.sharing_account import sharing_account, totals_of

    with session.between_steps() as engine:
        trace = engine.trace.copy()
    entries = sharing_account(trace)
    steps = sorted({entry.step for entry in entries if entry.kind in ("fork", "copy", "death")})
    if not steps:
        st.html(notice(NOTHING_YET))
        return
    st.html(figures(told_figures(FIGURES, {"totals": totals_of(entries)})))
    step = _choose_step(steps, session.moment.step)
    st.html(_table(step, [entry for entry in entries if entry.step == step]))
    st.html(f'<p class="pv-ask">{escaped(SLOWLY)}</p>')
    _draw_slowly(trace, step)


def _choose_step(steps: list[int], last: int) -> int:
    """A step in which something was forked, copied or pruned; at first the last one up to where the map stands."""
    at = step_looked_at()
    shown = last if at is None else at
    if st.session_state.get(_MAP_STEP) != shown or st.session_state.get(STEP) not in steps:
        st.session_state[_MAP_STEP] = shown
        st.session_state[STEP] = max((step for step in steps if step <= shown), default=steps[0])
    return int(st.selectbox("Steps with a fork, a copy or a beam that dies", steps, key=STEP))


def _draw_slowly(trace: Trace, step: int) -> None:
    """From the end of the step before, so that the counts are seen before they change."""
    payload = frames_payload(trace, granularity="event", first=max(step - 1, 0), last=step, title=f"Step {step} slowly")
    begins = next(number for number, frame in enumerate(payload["frames"]) if frame["step"] == step)
    memory_map(payload, key="slow_map", position=max(begins - 1, 0))


def _table(step: int, entries: list[Entry]) -> str:
    caption = f"What step {step} did to sharing"
    head = "".join(f'<th scope="col">{name}</th>' for name in ("What", "Who", "Block", "ref_cnt", "In words"))
    body = "".join(_row(entry) for entry in entries)
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}">'
        f'<table data-sharing="{step}"><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(entry: Entry) -> str:
    counts = "" if entry.ref_cnt_before is None else f"{entry.ref_cnt_before} → {entry.ref_cnt_after}"
    block = "" if entry.block_id is None else str(entry.block_id)
    after = f" {entry.given_back_by} gave it back." if entry.given_back_by else ""
    cells = (entry.seq_id, block, counts, entry.sentence + after)
    return (
        f'<tr data-kind="{entry.kind}"><th scope="row">{NAMES[entry.kind]}</th>'
        + "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        + "</tr>"
    )
