"""Out of the live page: the trace, its tables, a page of its own, and where else they can be read."""

from __future__ import annotations

import streamlit as st

from engine.trace import Trace
from views.course import OPEN_TRACE
from views.engine_session import EngineSession
from views.live_link import step_looked_at
from views.trace_downloads import draw_downloads

COMMANDS = """python -m engine.trace_tool check trace.json
python -m engine.trace_tool print trace.json
python -m engine.trace_tool table trace.json --step {step}
python -m engine.trace_tool blocks trace.json --step {step}
python -m views.notebook trace.json > map.html"""
IN_A_NOTEBOOK = """from pathlib import Path
from engine import Trace
from views.notebook import show

show(Trace.from_json(Path("trace.json").read_text()))"""


def draw_take_away(session: EngineSession) -> None:
    moment, at = session.moment, step_looked_at()
    step = moment.step if at is None else min(at, moment.step)

    def trace_now() -> Trace:
        with session.between_steps() as engine:
            return engine.trace.copy()

    st.markdown(f"The whole run as one file, or the tables as they were after step {step}, where the map stands.")
    draw_downloads(trace_now, step, has_blocks=True, key="live")
    st.markdown("The picture as SVG or PNG: **Export**, above the map.")
    st.page_link(OPEN_TRACE.file, label=f"Open a trace again: **{OPEN_TRACE.title}**", icon=OPEN_TRACE.icon)
    st.markdown("The same from the command line:")
    st.code(COMMANDS.format(step=step), language=None)
    st.markdown("In a notebook:")
    st.code(IN_A_NOTEBOOK, language="python")
