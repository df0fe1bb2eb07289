"""The wait for a model: a progress bar that all tabs see, and what to do when it cannot be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.progress import Progress
from views.html_parts import notice
from views.server import TINY, model_shelf

if TYPE_CHECKING:
    from engine.weights import LoadedModel

SECONDS_BETWEEN_LOOKS = 0.3


def wait_for_model(name: str) -> LoadedModel:
    """The model, or `tiny-random` in its place when it cannot be had. While it loads, the page ends here."""
    loading = model_shelf().ask(name)
    if not loading.is_over:
        _draw_progress(name)
        st.stop()
    if loading.model is None:
        _offer_retry(name, loading.problem)
        if name == TINY:
            st.stop()
        return wait_for_model(TINY)
    return loading.model


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


def _offer_retry(name: str, problem: str) -> None:
    with st.container(key="model_problem"):
        st.html(notice(f"{problem}", "problem"))
        st.button("Try again", key="retry_model", on_click=model_shelf().retry, args=(name,))
