"""The page of a trace file: choose a file or a recorded run, then its summary, map, tables and downloads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import streamlit as st

from course.recorded_runs import FOLDER, recording_titles
from engine.i18n import N_, _
from engine.trace.export import summary
from engine.trace.source import WholeTrace, facts_of
from engine.trace.state import CacheState
from engine.trace.usage import usage_of
from views.elements.charts import frame_table
from views.elements.tables import blocks_frame, regions_frame, sequences_frame
from views.html_parts import notice, usage_figures
from views.memory_map.component import memory_map
from views.remote.picture import draw_moment
from views.remote.viewed_source import ViewedSource
from views.remote.vocabulary import Vocabulary
from views.server.frames_route import frames_path
from views.server.opened_traces import OpenedTrace, opened_traces, read_trace
from views.trace.downloads import draw_downloads
from views.trace.file_picker import TakenFile, pick_file, taken_file

FROM_A_SERVER = N_(
    "This trace comes from a server: it says which blocks were stored, not where they are or which request holds them."
)
_PICKER, _CHOSEN, _OPENED = "trace_file", "chosen_trace_file", "opened_trace"
_RECORDED, _URL_NAME = "recorded_run", "recorded"


def choose_file() -> TakenFile | None:
    """This tab's file, remembered over other pages; without one, draw the file picker and return None."""
    chosen: TakenFile | None = st.session_state.get(_CHOSEN)
    if chosen is None:
        chosen = _recording_in_the_url()
    if chosen is None:
        pick_file(_("Trace file (JSON)"), ".json", key=_PICKER, on_pick=_take)
        titles = recordings()
        st.pills(_("Or a run that was recorded"), list(titles), key=_RECORDED, format_func=lambda name: _(titles[name]),
                 on_change=_take_recording)  # fmt: skip
        return None
    st.button(_("Open another file"), key="another_file", on_click=_forget)
    return chosen


def opened_trace(file: TakenFile) -> OpenedTrace | None:
    """The trace in the file, read once; None when it cannot be read and the page says why."""
    opened, problem = _read_once(file)
    if opened is None:
        st.html(notice(problem, "problem"))
    else:
        opened_traces().add(opened)
    return opened


def draw_opened(opened: OpenedTrace) -> None:
    """Summary, map, tables and downloads of an opened trace."""
    trace = opened.trace
    if recorded := recorded_sentence(trace.info):
        st.html(notice(recorded))
    st.text(summary(trace))
    payload, live = opened.frames.initial_payload(), frames_path(opened)
    shown = memory_map(payload, key="opened_map", position=trace.num_steps, live=live)
    step = min(shown.step, trace.num_steps)
    state = trace.at(step)
    if state.blocks:
        st.html(usage_figures(step, usage_of(state)))
    elif not state.arena and trace.at(trace.num_steps).prefix_cache.ranks:
        st.html(notice(_(FROM_A_SERVER)))
        draw_moment(ViewedSource(WholeTrace(trace, facts_of(trace.info, opened.frames.title))), step, Vocabulary())
    _draw_tables(state, step)
    draw_downloads(lambda: trace, step, has_blocks=bool(state.blocks), key="opened")


def _read_once(file: TakenFile) -> tuple[OpenedTrace | None, str]:
    """The trace, or the sentence that says why it cannot be read."""
    known = st.session_state.get(_OPENED)
    if known is None or known[0] != file:
        with st.spinner(_("Reading the trace")):
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


def _recording_in_the_url() -> TakenFile | None:
    """The recording that `?recorded=beams` names: how other pages link to one."""
    name = st.query_params.get(_URL_NAME)
    if name in recordings():
        st.session_state[_CHOSEN] = recording(str(name))
    return st.session_state.get(_CHOSEN)


def _forget() -> None:
    st.session_state.pop(_CHOSEN, None)
    st.session_state.pop(_OPENED, None)
    st.query_params.pop(_URL_NAME, None)


def _draw_tables(state: CacheState, step: int) -> None:
    tables = [(_("Sequences"), sequences_frame(state))]
    if state.blocks:
        tables.append((_("Physical blocks"), blocks_frame(state)))
    if state.arena:
        tables.append((_("Reservations"), regions_frame(state)))
    for name, table in tables:
        with st.expander(_("{name} after step {step}").format(name=name, step=step)):
            st.html(frame_table(table, _("{name} after step {step}").format(name=name, step=step)))


@cache
def recordings() -> dict[str, str]:
    """Name and title of each recorded run, read once."""
    return recording_titles(FOLDER)


def recording(name: str) -> TakenFile:
    """A recorded run as if a reader had picked its file."""
    file = FOLDER / f"{name}.json"
    return TakenFile(file.name, file.read_text("utf-8"))


def recorded_sentence(info: Mapping[str, Any]) -> str:
    """On which device, when and from which model a trace was recorded; empty for one that was not."""
    if "recorded" not in info:
        return ""
    when = f"{info['device_name']}, {info['recorded']}," if "device_name" in info else info["recorded"]
    return _("Recorded on {when} with {model} in {dtype}. No model is running here.").format(
        when=when, model=info.get("model"), dtype=info.get("dtype")
    )
