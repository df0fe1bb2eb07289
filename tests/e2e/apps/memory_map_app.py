"""A page with nothing but memory maps: `?scene=fox&second=gaps&granularity=event&position=3`."""

from __future__ import annotations

import streamlit as st

from tests.helpers.map_traces import SCENES
from views.frames import frames_payload
from views.memory_map import memory_map

st.set_page_config(layout="wide", page_title="maps")


@st.cache_data
def payload_of(scene: str, granularity: str) -> dict:
    return frames_payload(SCENES[scene](), granularity=granularity, title=scene)


query = st.query_params
position = int(query["position"]) if "position" in query else None
payload = payload_of(query.get("scene", "fox"), query.get("granularity", "step"))
shown = memory_map(payload, key="map", position=position)
st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.text(f"runs={st.session_state['runs']} position={shown.position} step={shown.step} kind={shown.kind}")
st.text(f"block={shown.block_id} slot={shown.slot} seq_id={shown.seq_id} logical={shown.logical_index}")
if "second" in query:
    memory_map(payload_of(query["second"], "step"), key="second")
