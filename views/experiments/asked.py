"""A page asks for an experiment: its result once it is there, until then how long it has taken, or why it failed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from views.experiments.runs import Run, Runs
from views.html_parts import notice
from views.kept import draw_corrections

Result = TypeVar("Result")

SECONDS_WORTH_WAITING = 0.4
"""What is done by then appears at once, without a bar that flashes by."""
SECONDS_BETWEEN_LOOKS = 0.3
_RUNS = "experiment_runs"


def result_of(experiment: str, inputs: Hashable, work: Callable[[], Result]) -> Result | None:
    """The result of `work`, which `inputs` decide; None while it runs, or when it failed and the page says why.

    `work` may raise ValueError with a sentence. `experiment` is the key of the page's controls.
    """
    runs: Runs = st.session_state.setdefault(_RUNS, Runs())
    run = runs.ask(experiment, inputs, work)
    if not run.wait(SECONDS_WORTH_WAITING):
        draw_corrections(experiment)
        _draw_waiting(run)
        return None
    if run.problem:
        draw_corrections(experiment)
        st.html(notice(run.problem, "problem"))
    st.html(
        f'<p class="pv-run" role="status" data-run="over" data-asked="{runs.num_asked}">'
        f"The engines ran for {run.seconds:.1f} s.</p>"
    )
    return run.result


@st.fragment(run_every=SECONDS_BETWEEN_LOOKS)
def _draw_waiting(run: Run[Result]) -> None:
    if run.is_over:
        st.rerun()
    st.html('<span data-run="running" hidden></span>')
    st.progress(0.0, text=f"Running the engines: {run.seconds:.0f} s so far")
