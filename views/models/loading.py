"""Waiting for a model: progress that all tabs share, and what to do when it cannot be loaded."""

from __future__ import annotations

import streamlit as st

from course.pages import OPEN_TRACE
from engine.i18n import N_, _
from engine.model.load_report import Progress
from views.html_parts import notice
from views.server.model_registry import TINY, ReadyModel, model_registry

POLL_SECONDS = 0.3
UNTIL_THEN = N_("Until then the live engine runs {tiny}, a model of random weights.")


def wait_for_model(name: str) -> ReadyModel:
    """The model, or `tiny-random` when it cannot be loaded. While one of them is loading, the script stops here."""
    draw_loading(name)
    loading = model_registry().request(name)
    if loading.model is not None:
        return loading.model
    if not loading.is_done or name == TINY:
        st.stop()
    return wait_for_model(TINY)


def draw_loading(name: str) -> None:
    """Draw the progress, or why the model cannot be loaded with a button to try again; nothing when it is ready."""
    loading = model_registry().request(name)
    if not loading.is_done:
        _draw_progress(name)
    if loading.problem:
        with st.container(key="model_problem"):
            st.html(notice(f"{loading.problem} {_(UNTIL_THEN).format(tiny=TINY)}", "problem"))
            st.button(_("Try again"), key="retry_model", on_click=model_registry().retry, args=(name,))
            st.page_link(OPEN_TRACE.file, label=_("Or open a run recorded with the real model"), icon=OPEN_TRACE.icon)


@st.fragment(run_every=POLL_SECONDS)
def _draw_progress(name: str) -> None:
    loading = model_registry().request(name)
    if loading.is_done:
        st.rerun()
    st.progress(loading.progress.fraction, text=_progress_text(loading.progress))


def _progress_text(progress: Progress) -> str:
    if not progress.total:
        return f"{_(progress.sentence)} ..."
    return _("{sentence}: {done:.0f} of {total:.0f} MB").format(
        sentence=_(progress.sentence), done=progress.done / 1e6, total=progress.total / 1e6
    )
