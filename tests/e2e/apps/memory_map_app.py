"""A page with nothing but memory maps: `?scene=fox&second=gaps&granularity=event&position=3`.

`?grow=2` shows the run up to step 2, and a button that lets it grow, as a live page does.
`?toggle=1` puts a switch above the map that takes it away.
`?scene=long&blocks=512&frames=2000` is the run that the benchmark scrubs.
"""

from __future__ import annotations

import streamlit as st

from tests.helpers.map_traces import SCENES, long_run
from views.memory_map.component import memory_map
from views.memory_map.frames import Granularity, Payload, frames_payload

st.set_page_config(layout="wide", page_title="maps")


@st.cache_data
def payload_of(scene: str, granularity: Granularity, last: int | None = None) -> Payload:
    trace_id = None if last is None else "growing"
    return frames_payload(SCENES[scene](), granularity=granularity, title=scene, last=last, trace_id=trace_id)


@st.cache_data
def long_payload(num_blocks: int, num_frames: int) -> Payload:
    return frames_payload(long_run(num_blocks, num_frames, num_requests=min(4, num_blocks // 160 + 1)))


def one_more() -> None:
    st.session_state["last"] += 1


query = st.query_params
if "grow" in query:
    st.session_state.setdefault("last", int(query["grow"]))
    st.button("Grow", on_click=one_more)
position = int(query["position"]) if "position" in query else None
granularity: Granularity = "event" if query.get("granularity") == "event" else "step"
if query.get("scene") == "long":
    payload = long_payload(int(query["blocks"]), int(query["frames"]))
else:
    payload = payload_of(query.get("scene", "fox"), granularity, st.session_state.get("last"))
if "toggle" in query and not st.toggle("Show the map", value=True):
    st.stop()
shown = memory_map(payload, key="map", position=position, selected_seq=query.get("seq"))
st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.text(f"runs={st.session_state['runs']} position={shown.position} step={shown.step} kind={shown.kind}")
st.text(f"block={shown.block_id} slot={shown.slot} seq_id={shown.seq_id} logical={shown.logical_index}")
if "second" in query:
    memory_map(payload_of(query["second"], "step"), key="second")
