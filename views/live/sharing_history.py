"""Forks, copies and frees of the live run, step by step: counts that fall as a copy is made, beams that die."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.i18n import N_, _
from engine.trace.trace import Trace
from views.figures import Figure, figure_rows
from views.html_parts import escaped, figures, notice
from views.live.link import viewed_step
from views.memory_map.component import memory_map
from views.memory_map.frames import frames_payload
from views.server.engine_session import EngineSession

if TYPE_CHECKING:
    from engine.inspect.sharing_history import SharingEntry

STEP, _MAP_STEP = "sharing_step", "sharing_map_step"
NOTHING_YET = N_(
    "Nothing is shared yet. Set Samples or Beams to 2 or more (under Settings), add a request and press Step."
)
FIGURES = (
    Figure(N_("Forks"), "{totals.num_forks}"),
    Figure(N_("Copies on write"), "{totals.num_copies}"),
    Figure(N_("Copies that left ref_cnt 1"), "{totals.num_to_one_reference}"),
    Figure(N_("Beams pruned"), "{totals.num_pruned}"),
    Figure(N_("Freed blocks reused"), "{totals.num_reused}"),
)
NAMES = {
    "fork": N_("Fork"),
    "share": N_("Block shared"),
    "copy": N_("Copy-on-write"),
    "prune": N_("Beam pruned"),
    "free": N_("Block released"),
    "reuse": N_("Freed block reused"),
}
SLOWLY = N_("The same step, one frame for each memory event. It opens just before the step begins.")


def draw_sharing(session: EngineSession) -> None:
    """Choose a step; its forks, copies and frees, and the memory event by event."""
    from engine.inspect.sharing_history import sharing_history, totals_of

    with session.between_steps() as engine:
        trace = engine.trace.copy()
    entries = sharing_history(trace)
    steps = sorted({entry.step for entry in entries if entry.kind in ("fork", "copy", "prune")})
    if not steps:
        st.html(notice(_(NOTHING_YET)))
        return
    st.html(figures(figure_rows(FIGURES, {"totals": totals_of(entries)})))
    step = _choose_step(steps, session.moment.step)
    st.html(_table(step, [entry for entry in entries if entry.step == step]))
    st.html(f'<p class="pv-ask">{escaped(_(SLOWLY))}</p>')
    _draw_slowly(trace, step)


def _choose_step(steps: list[int], last: int) -> int:
    """A step in which something was forked, copied or pruned; at first the last one up to where the map stands."""
    at = viewed_step()
    shown = last if at is None else at
    if st.session_state.get(_MAP_STEP) != shown or st.session_state.get(STEP) not in steps:
        st.session_state[_MAP_STEP] = shown
        st.session_state[STEP] = max((step for step in steps if step <= shown), default=steps[0])
    return int(st.selectbox(_("Steps with a fork, a copy or a pruned beam"), steps, key=STEP))


def _draw_slowly(trace: Trace, step: int) -> None:
    """From the end of the step before, so that the counts are seen before they change."""
    payload = frames_payload(
        trace,
        granularity="event",
        first=max(step - 1, 0),
        last=step,
        title=_("Step {step}, event by event").format(step=step),
    )
    begins = next(number for number, frame in enumerate(payload["frames"]) if frame["step"] == step)
    memory_map(payload, key="slow_map", position=max(begins - 1, 0))


def _table(step: int, entries: list[SharingEntry]) -> str:
    caption = _("Sharing in step {step}").format(step=step)
    head = "".join(
        f'<th scope="col">{name}</th>' for name in (_("Event"), _("Sequence"), _("Block"), "ref_cnt", _("Description"))
    )
    body = "".join(_row(entry) for entry in entries)
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}">'
        f'<table data-sharing="{step}"><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(entry: SharingEntry) -> str:
    counts = "" if entry.ref_cnt_before is None else f"{entry.ref_cnt_before} → {entry.ref_cnt_after}"
    block = "" if entry.block_id is None else str(entry.block_id)
    after = _(" {owner} had freed it.").format(owner=entry.previous_owner) if entry.previous_owner else ""
    cells = (entry.seq_id, block, counts, entry.sentence + after)
    return (
        f'<tr data-kind="{entry.kind}"><th scope="row">{escaped(_(NAMES[entry.kind]))}</th>'
        + "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        + "</tr>"
    )
