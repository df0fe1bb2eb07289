"""Traces that tabs show now, held weakly, so that a map can get their frames over its line."""

from __future__ import annotations

import threading
import weakref

import streamlit as st

from views.opened_trace import OpenedTrace


class ShownTraces:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces: weakref.WeakValueDictionary[str, OpenedTrace] = weakref.WeakValueDictionary()

    def add(self, opened: OpenedTrace) -> None:
        with self._lock:
            self._traces[opened.frames.trace_id] = opened

    def find(self, trace_id: str) -> OpenedTrace | None:
        """The trace whose frames carry this name."""
        with self._lock:
            return self._traces.get(trace_id)


@st.cache_resource(show_spinner=False)
def shown_traces() -> ShownTraces:
    """One for the whole server."""
    return ShownTraces()
