"""The slot microscope: one slot of the live engine, from its token down to the bytes and the real numbers."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from engine.state import CacheState
from views.charts import draw_chart
from views.engine_session import EngineSession
from views.html_parts import escaped, figures, notice
from views.lab_choice import choose_number, draw_tool_notes
from views.slot_address import slot_address_lines
from views.text_safe import visible_piece
from views.told import Facts, Figure, tell, told_figures

SLOT = "slot"
FIGURES = (
    Figure("Slot", "{view.slot}"),
    Figure("Block", "{view.block_id}"),
    Figure("Place in the block", "{view.offset}"),
    Figure("ref_cnt of the block", "{view.ref_cnt}"),
    Figure("Byte offset", "{view.place.byte_offset}"),
    Figure("Bytes of one vector", "{view.place.num_bytes}"),
    Figure("Number type", "{view.place.dtype}"),
)
IN_THE_TENSOR = (
    "key_cache and value_cache have the shape {view.place.shape}: layers, blocks, slots in a block, KV heads, numbers "
    "in a head. Their strides, in numbers: {view.place.strides}.",
    "This vector begins at index {view.place.index}: {place}.",
)
NEVER_WRITTEN = "Nothing was ever written here, so the numbers are the zeros that the pool began with."
STALE = "No block table leads here now. The numbers are leftovers of {view.content.seq_id}, until somebody writes."
READ_BY = "Tables that lead here: {num_readers}. Requests: {requests}."
ORANGE_TO_BLUE = [[0.0, "#D55E00"], [0.5, "#F4F4F4"], [1.0, "#0072B2"]]


def draw_microscope(session: EngineSession) -> None:
    """The slot that was clicked in the map, or typed."""
    from engine.lab.slot_microscope import look_at_slot, place_in_words

    info, state = session.engine.trace.info, session.moment.state
    slot_side, layer_side, head_side = st.columns(3)
    with slot_side:
        slot = choose_number("Slot", SLOT, state.num_blocks * state.block_size)
    with layer_side:
        layer = choose_number("Layer", "layer", int(info["num_layers"]))
    with head_side:
        kv_head = choose_number("KV head", "kv_head", int(info["num_kv_heads"]))
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
    st.html(figures(told_figures(FIGURES, facts)))
    _draw_token(state, facts)
    for reader in view.readers:
        st.html(slot_address_lines(reader))
    st.html("".join(f'<p class="pv-ask">{escaped(tell(line, facts))}</p>' for line in IN_THE_TENSOR))
    caption = f"Keys and values of slot {slot}, layer {layer}, KV head {kv_head}, after step {step}"
    draw_chart(_heatmap(view.key, view.value), _table(view.key, view.value), caption, key="slot_numbers")


def _draw_token(state: CacheState, facts: Facts) -> None:
    """Whose token it is, or why it is nobody's."""
    view = facts["view"]
    if view.content is None:
        st.html(notice(NEVER_WRITTEN))
        return
    content = view.content
    st.html(
        f'<p class="pv-ask">It holds token {content.position} of {escaped(content.seq_id)}: '
        f'<span class="pv-piece" data-piece>{escaped(visible_piece(content.piece))}</span> (id {content.token_id}).</p>'
    )
    st.html(notice(tell(STALE if view.is_stale else READ_BY, facts)))


def _table(key: tuple[float, ...], value: tuple[float, ...]) -> pd.DataFrame:
    return pd.DataFrame({"Number": range(len(key)), "Key": key, "Value": value})


def _heatmap(key: tuple[float, ...], value: tuple[float, ...]) -> go.Figure:
    """Two strips, each with a scale of its own, zero in the middle."""
    figure = go.Figure()
    for row, (name, vector) in enumerate((("Key", key), ("Value", value))):
        largest = max(map(abs, vector)) or 1.0
        bar = {"lenmode": "pixels", "len": 90, "y": 0.79 - 0.58 * row, "thickness": 12, "nticks": 3}
        figure.add_heatmap(
            z=[vector], y=[name], x=list(range(len(vector))), zmin=-largest, zmax=largest, colorscale=ORANGE_TO_BLUE,
            colorbar=bar, xaxis="x", yaxis=f"y{row + 1}", name=name,
            hovertemplate=name + " %{x}: %{z:.4g}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(
        height=300,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": "Number of the vector", "anchor": "y2"},
        yaxis={"domain": [0.58, 1.0]},
        yaxis2={"domain": [0.0, 0.42]},
        dragmode=False,
    )
    return figure
