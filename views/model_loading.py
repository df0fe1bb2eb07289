"""The wait for a model: a progress bar that all tabs see, and what to do when it cannot be had."""

from __future__ import annotations

import streamlit as st

from engine.progress import Progress
from views.course import OPEN_TRACE
from views.html_parts import notice
from views.server import TINY, ReadyModel, model_shelf

SECONDS_BETWEEN_LOOKS = 0.3
UNTIL_THEN = f"Until then the live engine runs {TINY}, a model of random weights."


def wait_for_model(name: str) -> ReadyModel:
    """The model, or `tiny-random` in its place when it cannot be had. While one of them loads, the page ends here."""
    draw_loading(name)
    loading = model_shelf().ask(name)
    if loading.model is not None:
        return loading.model
    if not loading.is_over or name == TINY:
        st.stop()
    return wait_for_model(TINY)


def draw_loading(name: str) -> None:
    """How far the model has come, or why it cannot be had and a button to try again; nothing when it is ready."""
    loading = model_shelf().ask(name)
    if not loading.is_over:
        _draw_progress(name)
    if loading.problem:
        with st.container(key="model_problem"):
            st.html(notice(f"{loading.problem} {UNTIL_THEN}", "problem"))
            st.button("Try again", key="retry_model", on_click=model_shelf().retry, args=(name,))
            st.page_link(
                OPEN_TRACE.file, label="Or look at runs that were recorded on the real model", icon=OPEN_TRACE.icon
            )


@st.fragment(run_every=SECONDS_BETWEEN_LOOKS)
def _draw_progress(name: str) -> None:
    loading = model_shelf().ask(name)
    if loading.is_over:
        st.rerun()
    st.progress(loading.progress.fraction, text=_progress_text(loading.progress))


def _progress_text(progress: Progress) -> str:
    if not progress.total:
        return f"{progress.sentence} ..."
    return f"{progress.sentence}: {progress.done / 1e6:.0f} of {progress.total / 1e6:.0f} MB"
