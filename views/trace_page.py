"""What the page shows of a trace that was opened: its summary, the map, and the tables of the step one looks at."""

from __future__ import annotations

import streamlit as st

from engine.state import CacheState
from engine.trace_source import WholeTrace, facts_of
from engine.trace_tool import summary
from engine.usage import usage_of
from views.charts import frame_table
from views.figures_of_usage import usage_figures
from views.file_picker import TakenFile, pick_file, taken_file
from views.frames_route import path_of
from views.html_parts import notice
from views.memory_map import memory_map
from views.opened_trace import OpenedTrace, read_trace
from views.recordings import recorded_sentence, recording, recordings
from views.remote_picture import draw_moment
from views.remote_shown import Shown
from views.remote_words import Words
from views.shown_traces import shown_traces
from views.tables import blocks_frame, regions_frame, sequences_frame
from views.trace_downloads import draw_downloads

FROM_A_SERVER = "This trace is a server's: it tells what was stored, not where it lies or who holds it."
_PICKER, _CHOSEN, _OPENED = "trace_file", "chosen_trace_file", "opened_trace"
_RECORDED, _ADDRESS = "recorded_run", "recorded"


def choose_file() -> TakenFile | None:
    """The file of this tab, kept over other pages; until there is one, the place to bring it to."""
    chosen: TakenFile | None = st.session_state.get(_CHOSEN)
    if chosen is None:
        chosen = _recording_in_the_address()
    if chosen is None:
        pick_file("Trace file (JSON)", ".json", key=_PICKER, on_pick=_take)
        titles = recordings()
        st.pills("Or a run that was recorded", list(titles), key=_RECORDED, format_func=titles.__getitem__,
                 on_change=_take_recording)  # fmt: skip
        return None
    st.button("Open another file", key="another_file", on_click=_forget)
    return chosen


def opened_trace(file: TakenFile) -> OpenedTrace | None:
    """The trace, read once a file; None when the page says what is wrong with it."""
    opened, problem = _read_once(file)
    if opened is None:
        st.html(notice(problem, "problem"))
    else:
        shown_traces().add(opened)
    return opened


def draw_opened(opened: OpenedTrace) -> None:
    trace = opened.trace
    if recorded := recorded_sentence(trace.info):
        st.html(notice(recorded))
    st.text(summary(trace))
    shown = memory_map(opened.frames.opening(), key="opened_map", position=trace.num_steps, live=path_of(opened))
    step = min(shown.step, trace.num_steps)
    state = trace.at(step)
    if state.blocks:
        st.html(usage_figures(step, usage_of(state)))
    elif not state.arena and trace.at(trace.num_steps).findable.ranks:
        st.html(notice(FROM_A_SERVER))
        draw_moment(Shown(WholeTrace(trace, facts_of(trace.info, opened.frames.title))), step, Words())
    _draw_tables(state, step)
    draw_downloads(lambda: trace, step, has_blocks=bool(state.blocks), key="opened")


def _read_once(file: TakenFile) -> tuple[OpenedTrace | None, str]:
    """The trace, or the sentence that says why it cannot be had."""
    known = st.session_state.get(_OPENED)
    if known is None or known[0] != file:
        with st.spinner("Reading the trace"):
            known = st.session_state[_OPENED] = (file, _read(file))
    outcome: tuple[OpenedTrace | None, str] = known[1]
    return outcome


def _read(file: TakenFile) -> tuple[OpenedTrace | None, str]:
    if file.problem:
        return None, file.problem
    try:
        return read_trace(file.text, file.name), ""
    except ValueError as error:
        return None, str(error)


def _take() -> None:
    st.session_state[_CHOSEN] = taken_file(_PICKER)


def _take_recording() -> None:
    st.session_state[_CHOSEN] = recording(st.session_state[_RECORDED])


def _recording_in_the_address() -> TakenFile | None:
    """`?recorded=beams`: how other pages link to one."""
    name = st.query_params.get(_ADDRESS)
    if name in recordings():
        st.session_state[_CHOSEN] = recording(str(name))
    return st.session_state.get(_CHOSEN)


def _forget() -> None:
    st.session_state.pop(_CHOSEN, None)
    st.session_state.pop(_OPENED, None)
    st.query_params.pop(_ADDRESS, None)


def _draw_tables(state: CacheState, step: int) -> None:
    tables = [("Sequences", sequences_frame(state))]
    if state.blocks:
        tables.append(("Physical blocks", blocks_frame(state)))
    if state.arena:
        tables.append(("Reservations", regions_frame(state)))
    for name, table in tables:
        with st.expander(f"{name} after step {step}"):
            st.html(frame_table(table, f"{name} after step {step}"))
