"""The slot microscope: one slot of the live engine, from its token down to the bytes and the real numbers."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from course.messages import Facts, fill
from engine.i18n import N_, _
from engine.trace.state import CacheState
from views.elements.charts import draw_chart
from views.elements.slot_address import slot_address_lines
from views.elements.token_chips import chip
from views.figures import Figure, figure_rows
from views.html_parts import escaped, figures, notice
from views.live.tool_settings import choose_number, draw_tool_notes
from views.server.engine_session import EngineSession

SLOT = "slot"
FIGURES = (
    Figure(N_("Slot"), "{view.slot}"),
    Figure(N_("Block"), "{view.block_id}"),
    Figure(N_("Offset in the block"), "{view.offset}"),
    Figure(N_("ref_cnt of the block"), "{view.ref_cnt}"),
    Figure(N_("Byte offset"), "{view.place.byte_offset}"),
    Figure(N_("Bytes per vector"), "{view.place.num_bytes}"),
    Figure(N_("Data type"), "{view.place.dtype}"),
)
IN_THE_TENSOR = (
    N_(
        "key_cache and value_cache have the shape {view.place.shape}: layers, blocks, block size, KV heads, "
        "head dimension. Their strides, in elements: {view.place.strides}."
    ),
    N_("This vector begins at index {view.place.index}: {place}."),
)
NEVER_WRITTEN = N_("Nothing has been written here yet: the values are the zeros that the pool started with.")
STALE = N_(
    "No block table points here now. The values are left over from {view.content.seq_id} until the slot "
    "is written again."
)
READ_BY = N_("Block tables that point here: {num_readers}. Requests: {requests}.")
ORANGE_TO_BLUE = [[0.0, "#D55E00"], [0.5, "#F4F4F4"], [1.0, "#0072B2"]]

_MARK = "\0"
"""Where the token goes, which is HTML of its own, in a sentence that is not."""


def draw_microscope(session: EngineSession) -> None:
    """The slot that was clicked in the map, or typed."""
    from engine.inspect.slot_microscope import look_at_slot, place_in_words

    info, state = session.engine.trace.info, session.moment.state
    slot_side, layer_side, head_side = st.columns(3)
    with slot_side:
        slot = choose_number(_("Slot"), SLOT, state.num_blocks * state.block_size)
    with layer_side:
        layer = choose_number(_("Layer"), "layer", int(info["num_layers"]))
    with head_side:
        kv_head = choose_number(_("KV head"), "kv_head", int(info["num_kv_heads"]))
    draw_tool_notes()
    with session.between_steps() as engine:
        view = look_at_slot(engine, slot, layer, kv_head)
        step = engine.trace.num_steps
    facts = {
        "view": view,
        "step": step,
        "place": place_in_words(view.place),
        "num_readers": len(view.readers),
        "requests": ", ".join(view.request_ids),
    }
    st.html(figures(figure_rows(FIGURES, facts)))
    _draw_token(state, facts)
    for reader in view.readers:
        st.html(slot_address_lines(reader))
    st.html("".join(f'<p class="pv-ask">{escaped(fill(line, facts))}</p>' for line in IN_THE_TENSOR))
    caption = _("Keys and values of slot {slot}, layer {layer}, KV head {kv_head}, after step {step}").format(
        slot=slot, layer=layer, kv_head=kv_head, step=step
    )
    draw_chart(slot_heatmap(view.key, view.value), _table(view.key, view.value), caption, key="slot_numbers")


def _draw_token(state: CacheState, facts: Facts) -> None:
    """Whose token it is, or why it is nobody's."""
    view = facts["view"]
    if view.content is None:
        st.html(notice(_(NEVER_WRITTEN)))
        return
    content = view.content
    sentence = _("It holds token {position} of {seq_id}: {piece} (id {token_id}).")
    before, after = escaped(
        sentence.format(position=content.position, seq_id=content.seq_id, piece=_MARK, token_id=content.token_id)
    ).split(_MARK)
    st.html(f'<p class="pv-ask">{before}<span data-piece>{chip(content.piece)}</span>{after}</p>')
    st.html(notice(fill(STALE if view.is_stale else READ_BY, facts)))


def _table(key: tuple[float, ...], value: tuple[float, ...]) -> pd.DataFrame:
    return pd.DataFrame({N_("Element"): range(len(key)), N_("Key"): key, N_("Value"): value})


def slot_heatmap(key: tuple[float, ...], value: tuple[float, ...]) -> go.Figure:
    """Key and value [head_dim] as two strips, each with a scale of its own, zero in the middle."""
    figure = go.Figure()
    for row, (name, vector) in enumerate(((_("Key"), key), (_("Value"), value))):
        largest = max(map(abs, vector)) or 1.0
        bar = {
            "lenmode": "pixels", "len": 90, "y": 0.79 - 0.58 * row, "thickness": 12,
            "tickvals": (-largest, 0, largest), "ticktext": (f"−{largest:.3g}", "0", f"{largest:.3g}"),
        }  # fmt: skip
        figure.add_heatmap(
            z=[vector], y=[name], x=list(range(len(vector))), zmin=-largest, zmax=largest, colorscale=ORANGE_TO_BLUE,
            colorbar=bar, xaxis="x", yaxis=f"y{row + 1}", name=name,
            hovertemplate=name + " %{x}: %{z:.4g}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(
        height=300,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": _("Element of the vector"), "anchor": "y2"},
        yaxis={"domain": [0.58, 1.0]},
        yaxis2={"domain": [0.0, 0.42]},
        dragmode=False,
    )
    return figure
