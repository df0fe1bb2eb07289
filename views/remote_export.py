"""What was seen, as a trace file: it opens on this page, in any copy of the app, and in `engine.trace_tool`."""

from __future__ import annotations

import streamlit as st

from views.remote_shown import Shown


def draw_export(now: Shown) -> None:
    """A download button; the file is made when it is pressed."""
    source = now.source
    if source is not None:
        st.download_button(
            "Save as a trace file", lambda: source.trace().to_json(), "trace.json", "application/json",
            key="remote_export", on_click="ignore",
        )  # fmt: skip
