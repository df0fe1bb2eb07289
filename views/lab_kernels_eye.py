"""The kernel's eye: one query token, layer and head; the blocks one kernel program visits, beat by beat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.state import CacheState
from views.charts import draw_chart
from views.engine_session import EngineSession
from views.html_parts import escaped, figures, notice
from views.lab_choice import choose_number, choose_one, draw_tool_notes, slide
from views.labels import PALETTE
from views.text_safe import visible_piece
from views.told import Figure, tell, told_figures
from views.url_values import NumberRule

if TYPE_CHECKING:
    from engine.lab.kernels_eye import BlockVisit, KernelView

SEQUENCE, TOKEN = "sequence", "token"
NOTHING = "No sequence has keys and values in the pool now. Add a request and press Step."
BEATS = {
    "follow table": ("Follow the table", "block_table[{visit.logical_index}] = {visit.block_id}"),
    "score": ("Scores: query · key × {view.scale:.4g}", "{scores}"),
    "maximum": ("Largest score so far", "{visit.maximum:.4f}"),
    "weights": ("exp(score − largest)", "{exponentials}"),
    "rescale": ("Shrink what was summed before", "× {visit.shrink:.4f}"),
    "sum": ("Sum so far", "{visit.total:.4f}"),
    "values": ("Add the values, each by its weight", "{num_tokens:token}"),
}
DIVIDE = ("Divide by the sum", "log of the sum of exp(score): {view.log_sum_exp:.6f}")
FIGURES = (
    Figure("Largest score so far", "{visit.maximum:.4f}"),
    Figure("Sum so far", "{visit.total:.4f}"),
    Figure("Final weight of this block", "{visit.weight:.4f}"),
)
AGREES = (
    "Worked out block by block, and by the {view.backend} kernel of this engine for the same query: output and "
    "log-sum-exp differ by at most {view.largest_difference:.2g}. Rounding explains up to {view.tolerance:g}."
)
DISAGREES = "The kernel's own output differs by {view.largest_difference:.2g}: more than rounding explains."


def draw_kernels_eye(session: EngineSession) -> None:
    """Choose a query, then step through what the kernel does with it."""
    state = session.moment.state
    names = [s.seq_id for s in state.sequences.values() if s.block_table and s.num_computed_tokens]
    if not names:
        st.html(notice(NOTHING))
        return
    view = _view_of(session, *_choose_query(session, state, names))
    rule = NumberRule("beat", "Beat", 1, len(view.visits) + 1, 1)
    beat = slide("Step through the blocks; the last beat is the division", rule)
    draw_tool_notes()
    if beat <= len(view.visits):
        _draw_visit(view, view.visits[beat - 1])
    else:
        st.html(_beat_table([("divide", *DIVIDE, {"view": view})], view, "Behind the loop"))
    verdict = tell(AGREES if view.agrees else DISAGREES, {"view": view})
    st.html(notice(verdict, "note" if view.agrees else "problem"))
    caption = f"What token {view.position} of {view.seq_id} reads: weight of each physical block"
    draw_chart(_weights_chart(view, beat), _weights_table(view), caption, key="block_weights")


def _choose_query(session: EngineSession, state: CacheState, names: list[str]) -> tuple[str, int, int, int]:
    info = session.engine.trace.info
    sides = st.columns(4)
    with sides[0]:
        seq_id = choose_one("Sequence", SEQUENCE, names, names[-1])
    num_written = state.sequences[seq_id].num_computed_tokens
    with sides[1]:
        position = choose_number("Query token", TOKEN, num_written, num_written - 1)
    with sides[2]:
        layer = choose_number("Layer", "layer", int(info["num_layers"]))
    with sides[3]:
        head = choose_number("Head", "head", int(info["num_heads"]))
    return seq_id, position, layer, head


def _view_of(session: EngineSession, seq_id: str, position: int, layer: int, head: int) -> KernelView:
    """Computed once for each query and step: moving from beat to beat asks the model for nothing."""
    from engine.lab.kernels_eye import kernels_eye

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
    pieces = "".join(f'<span class="pv-piece">{escaped(visible_piece(t.piece))}</span>' for t in visit.tokens)
    first, last = visit.tokens[0].position, visit.tokens[-1].position
    st.html(
        f'<p class="pv-ask">Physical block <b data-visited-block>{visit.block_id}</b> holds tokens {first} to {last}: '
        f"{pieces}</p>"
    )
    st.html(figures(told_figures(FIGURES, facts)))
    rows = [(beat, name, template, facts) for beat, (name, template) in BEATS.items()]
    st.html(_beat_table(rows, view, f"Inside the loop, at block {visit.block_id}"))


def _beat_table(rows: list[tuple[str, str, str, dict[str, object]]], view: KernelView, caption: str) -> str:
    """What happens, the real numbers, and the line of the kernel's source that does it."""
    lines = {line.beat: line for line in view.source}
    body = ""
    for beat, name, template, facts in rows:
        line = lines[beat]  # type: ignore[index]  # BEATS names them all
        where = f"{line.file}, line {line.number}"
        body += (
            f'<tr data-beat="{escaped(beat)}"><th scope="row">{escaped(tell(name, facts))}</th>'
            f"<td>{escaped(tell(template, facts))}</td>"
            f"<td><code>{escaped(line.text)}</code><br><small>{escaped(where)}</small></td></tr>"
        )
    head = "".join(f'<th scope="col">{heading}</th>' for heading in ("Beat", "Now", "In the kernel's source"))
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _weights_table(view: KernelView) -> pd.DataFrame:
    return pd.DataFrame(list(_weights_rows(view)))


def _weights_rows(view: KernelView) -> Iterator[dict[str, object]]:
    for visit in view.visits:
        yield {
            "Logical block": visit.logical_index,
            "Physical block": visit.block_id,
            "Tokens": " ".join(visible_piece(token.piece) for token in visit.tokens),
            "Largest so far": f"{visit.maximum:.4f}",
            "Sum so far": f"{visit.total:.4f}",
            "Final weight": f"{visit.weight:.6f}",
        }


def _weights_chart(view: KernelView, beat: int) -> go.Figure:
    """A bar a block, in the order of the visits; those visited so far are filled."""
    figure = go.Figure()
    for name, visits, pattern in (("Visited", view.visits[:beat], ""), ("Still to come", view.visits[beat:], "/")):
        figure.add_bar(
            x=[f"block {visit.block_id}" for visit in visits], y=[visit.weight for visit in visits], name=name,
            marker={"color": PALETTE[0], "pattern": {"shape": pattern}},
        )  # fmt: skip
    figure.update_layout(
        height=260,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        yaxis={"title": "Weight", "rangemode": "tozero"},
        xaxis={"title": "Physical blocks, in the order of the table"},
        dragmode=False,
    )
    return figure
