"""The kernel's eye: one query token, layer and head; the blocks one kernel program visits, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from course.messages import Plural, Text, fill
from engine.i18n import N_, _
from engine.trace.state import CacheState
from views.browser.text_safe import visible_piece
from views.elements.charts import draw_chart
from views.elements.token_chips import chip
from views.figures import Figure, figure_rows
from views.html_parts import escaped, figures, notice
from views.live.tool_settings import choose_number, choose_one, draw_tool_notes, slide
from views.memory_map.labels import PALETTE
from views.server.engine_session import EngineSession
from views.url_values import NumberRule

if TYPE_CHECKING:
    from engine.inspect.kernels_eye import BlockVisit, KernelView

SEQUENCE, TOKEN = "sequence", "token"
NOTHING = N_("No sequence has keys and values in the pool now. Add a request and press Step.")
PARTS: dict[str, tuple[str, Text]] = {
    "follow table": (N_("Look up the block table"), "block_table[{visit.logical_index}] = {visit.block_id}"),
    "score": (N_("Scores: query · key × {view.scale:.4g}"), "{scores}"),
    "maximum": (N_("Running maximum"), "{visit.maximum:.4f}"),
    "weights": ("exp(score − largest)", "{exponentials}"),
    "rescale": (N_("Rescale the earlier sums"), "× {visit.shrink:.4f}"),
    "sum": (N_("Running sum"), "{visit.total:.4f}"),
    "values": (N_("Add the values, each times its weight"), Plural("num_tokens", "{n} token", "{n} tokens")),
}
DIVIDE = (N_("Divide by the sum"), N_("log-sum-exp of the scores: {view.log_sum_exp:.6f}"))
FIGURES = (
    Figure(N_("Running maximum"), "{visit.maximum:.4f}"),
    Figure(N_("Running sum"), "{visit.total:.4f}"),
    Figure(N_("Final weight of this block"), "{visit.weight:.4f}"),
)
AT_ONCE = Plural(
    "view.keys_at_once",
    "This page goes one block at a time. The {view.backend} kernel takes {n} key at a time, whichever block it "
    "is in, so its running figures change once for each key. The final figures are the same.",
    "This page goes one block at a time. The {view.backend} kernel takes {n} keys at a time, whichever blocks "
    "they are in: it scores all of them, then does the other steps once, so its running figures change once "
    "for each {n} keys. The final figures are the same.",
)
ALL_AT_ONCE = N_(
    "This page goes one block at a time. The {view.backend} kernel gathers all keys and computes one softmax "
    "over them, so it has no running figures. Its result equals the one after the last block here."
)
AGREES = N_(
    "Computed twice for the same query, block by block here and by this engine's {view.backend} kernel: output "
    "and log-sum-exp differ by at most {view.largest_difference:.2g}. Rounding explains up to "
    "{view.tolerance:g}."
)
DISAGREES = N_("The kernel's own output differs by {view.largest_difference:.2g}: more than rounding explains.")


def draw_kernels_eye(session: EngineSession) -> None:
    """Choose a query, then step through what the kernel does with it."""
    state = session.moment.state
    names = [s.seq_id for s in state.sequences.values() if s.block_table and s.num_computed_tokens]
    if not names:
        st.html(notice(_(NOTHING)))
        return
    view = _view_of(session, *_choose_query(session, state, names))
    rule = NumberRule("beat", N_("Block"), 1, len(view.visits) + 1, 1)
    number = slide(_("Step through the blocks; the division comes after the last one"), rule)
    draw_tool_notes()
    if number <= len(view.visits):
        _draw_visit(view, view.visits[number - 1])
    else:
        st.html(_parts_table([("divide", *DIVIDE, {"view": view})], view, _("After the loop")))
    st.html(notice(fill(ALL_AT_ONCE if view.keys_at_once is None else AT_ONCE, {"view": view})))
    verdict = fill(AGREES if view.agrees else DISAGREES, {"view": view})
    st.html(notice(verdict, "note" if view.agrees else "problem"))
    caption = _("What token {position} of {seq_id} reads: weight of each physical block").format(
        position=view.position, seq_id=view.seq_id
    )
    draw_chart(_weights_chart(view, number), _weights_table(view), caption, key="block_weights")


def _choose_query(session: EngineSession, state: CacheState, names: list[str]) -> tuple[str, int, int, int]:
    info = session.engine.trace.info
    sides = st.columns(4)
    with sides[0]:
        seq_id = choose_one(_("Sequence"), SEQUENCE, names, names[-1])
    num_written = state.sequences[seq_id].num_computed_tokens
    with sides[1]:
        position = choose_number(_("Query token"), TOKEN, num_written, num_written - 1)
    with sides[2]:
        layer = choose_number(_("Layer"), "layer", int(info["num_layers"]))
    with sides[3]:
        head = choose_number(_("Head"), "head", int(info["num_heads"]))
    return seq_id, position, layer, head


def _view_of(session: EngineSession, seq_id: str, position: int, layer: int, head: int) -> KernelView:
    """Computed once for each query and step: moving from block to block runs no model."""
    from engine.inspect.kernels_eye import kernels_eye

    with session.between_steps() as engine:
        question = (session.frames.trace_id, engine.trace.num_steps, seq_id, position, layer, head)
        known = st.session_state.get("eye_view")
        if known is None or known[0] != question:
            known = question, kernels_eye(engine, seq_id, position, layer, head)
            st.session_state["eye_view"] = known
    view: KernelView = known[1]
    return view


def _draw_visit(view: KernelView, visit: BlockVisit) -> None:
    facts = {
        "view": view,
        "visit": visit,
        "scores": "  ".join(f"{token.score:.4f}" for token in visit.tokens),
        "exponentials": "  ".join(f"{e:.4f}" for e in visit.exponentials),
        "num_tokens": len(visit.tokens),
    }
    pieces = "".join(chip(token.piece) for token in visit.tokens)
    holds = _("Physical block {block_id} holds tokens {first} to {last}:").format(
        block_id=visit.block_id, first=visit.tokens[0].position, last=visit.tokens[-1].position
    )
    st.html(f'<p class="pv-ask" data-visited-block="{visit.block_id}">{escaped(holds)} {pieces}</p>')
    st.html(figures(figure_rows(FIGURES, facts)))
    rows = [(part, name, template, facts) for part, (name, template) in PARTS.items()]
    st.html(_parts_table(rows, view, _("Inside the loop, at block {block_id}").format(block_id=visit.block_id)))


def _parts_table(rows: list[tuple[str, str, Text, dict[str, object]]], view: KernelView, caption: str) -> str:
    """What happens, the real numbers, and the line of the kernel's source that does it."""
    lines = {line.part: line for line in view.source}
    body = ""
    for part, name, template, facts in rows:
        line = lines[part]  # type: ignore[index]  # PARTS names them all
        where = _("{line.function} in {line.file}, line {line.number}").format(line=line)
        body += (
            f'<tr data-part="{escaped(part)}"><th scope="row">{escaped(fill(name, facts))}</th>'
            f"<td>{escaped(fill(template, facts))}</td>"
            f"<td><code>{escaped(line.text)}</code><br><small>{escaped(where)}</small></td></tr>"
        )
    head = "".join(f'<th scope="col">{heading}</th>' for heading in (_("Operation"), _("Now"), _("Kernel source")))
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _weights_table(view: KernelView) -> pd.DataFrame:
    return pd.DataFrame(list(_weights_rows(view)))


def _weights_rows(view: KernelView) -> Iterator[dict[str, object]]:
    for visit in view.visits:
        yield {
            N_("Logical block"): visit.logical_index,
            N_("Physical block"): visit.block_id,
            N_("Tokens"): " ".join(visible_piece(token.piece) for token in visit.tokens),
            N_("Running maximum"): f"{visit.maximum:.4f}",
            _("Running sum"): f"{visit.total:.4f}",
            N_("Final weight"): f"{visit.weight:.6f}",
        }


def _weights_chart(view: KernelView, num_visited: int) -> go.Figure:
    """A bar a block, in the order of the visits; those visited so far are filled."""
    figure = go.Figure()
    for name, visits, pattern in (
        (_("Already read"), view.visits[:num_visited], ""),
        (_("Not read yet"), view.visits[num_visited:], "/"),
    ):
        figure.add_bar(
            x=[_("block {block_id}").format(block_id=visit.block_id) for visit in visits],
            y=[visit.weight for visit in visits], name=name,
            marker={"color": PALETTE[0], "pattern": {"shape": pattern}},
        )  # fmt: skip
    figure.update_layout(
        height=260,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        yaxis={"title": _("Weight"), "rangemode": "tozero"},
        xaxis={"title": _("Physical blocks, in the order of the block table")},
        dragmode=False,
    )
    return figure
