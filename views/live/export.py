"""Out of the live page: the trace, its tables, a page of its own, and where else they can be read."""

from __future__ import annotations

import streamlit as st

from course.pages import OPEN_TRACE
from engine.i18n import _
from engine.trace.trace import Trace
from views.live.link import viewed_step
from views.server.engine_session import EngineSession
from views.trace.downloads import draw_downloads

COMMANDS = """python -m engine.trace check trace.json
python -m engine.trace print trace.json
python -m engine.trace table trace.json --step {step}
python -m engine.trace blocks trace.json --step {step}
python -m views.memory_map.notebook trace.json > map.html"""
IN_A_NOTEBOOK = """from pathlib import Path
from engine import Trace
from views.memory_map.notebook import show

show(Trace.from_json(Path("trace.json").read_text()))"""


def draw_take_away(session: EngineSession) -> None:
    """Downloads of the trace, commands and notebook lines that read it."""
    moment, at = session.moment, viewed_step()
    step = moment.step if at is None else min(at, moment.step)

    def trace_now() -> Trace:
        with session.between_steps() as engine:
            return engine.trace.copy()

    st.markdown(
        _("The whole run as one file, or the tables after step {step}, the step the map shows.").format(step=step)
    )
    draw_downloads(trace_now, step, has_blocks=True, key="live")
    st.markdown(_("The picture as SVG or PNG: **Export**, above the map."))
    st.page_link(
        OPEN_TRACE.file, label=_("To open a trace: **{title}**").format(title=OPEN_TRACE.title), icon=OPEN_TRACE.icon
    )
    st.markdown(_("On the command line:"))
    st.code(COMMANDS.format(step=step), language=None)
    st.markdown(_("In a notebook:"))
    st.code(IN_A_NOTEBOOK, language="python")
