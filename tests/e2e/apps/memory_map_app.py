"""A page with nothing but memory maps: `?scene=fox&second=gaps&granularity=event&position=3`.

`?grow=2` shows the run up to step 2, and a button that lets it grow, as a live page does.
"""

from __future__ import annotations

import streamlit as st

from tests.helpers.map_traces import SCENES
from views.frames import Granularity, Payload, frames_payload
from views.memory_map import memory_map

st.set_page_config(layout="wide", page_title="maps")


@st.cache_data
def payload_of(scene: str, granularity: Granularity, last: int | None = None) -> Payload:
    trace_id = None if last is None else "growing"
    return frames_payload(SCENES[scene](), granularity=granularity, title=scene, last=last, trace_id=trace_id)


def one_more() -> None:
    st.session_state["last"] += 1


query = st.query_params
if "grow" in query:
    st.session_state.setdefault("last", int(query["grow"]))
    st.button("Grow", on_click=one_more)
position = int(query["position"]) if "position" in query else None
granularity: Granularity = "event" if query.get("granularity") == "event" else "step"
payload = payload_of(query.get("scene", "fox"), granularity, st.session_state.get("last"))
shown = memory_map(payload, key="map", position=position, selected_seq=query.get("seq"))
st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.text(f"runs={st.session_state['runs']} position={shown.position} step={shown.step} kind={shown.kind}")
st.text(f"block={shown.block_id} slot={shown.slot} seq_id={shown.seq_id} logical={shown.logical_index}")
if "second" in query:
    memory_map(payload_of(query["second"], "step"), key="second")
