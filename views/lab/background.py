"""Experiments run in background threads: a page submits one and draws its result, its progress or why it failed.

A result is kept with the inputs that decide it, so the same inputs run nothing a second time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import streamlit as st

from engine.i18n import N_, _
from engine.model.interpreter_exit import computing
from engine.model.load_report import ModelLoadError
from views.html_parts import notice
from views.url_state import draw_corrections

Result = TypeVar("Result")

MAX_CONCURRENT = 2
"""Experiments that run at a time on one server; the others are queued."""
MAX_CACHED = 12
"""Results that one tab keeps."""
INTERNAL_ERROR = N_("The experiment stopped because of an error in this app. The server's log has the details.")
SECONDS_BEFORE_PROGRESS = 0.4
"""A result that is there by then is drawn at once, without a progress bar that flashes by."""
SECONDS_BETWEEN_POLLS = 0.3
_TASKS = "experiment_tasks"

_slots = threading.BoundedSemaphore(MAX_CONCURRENT)


class Task(Generic[Result]):
    """One experiment, running or done. `error`: a sentence when it failed; `result` otherwise."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self.result: Result | None = None
        self.error = ""
        self._is_cancelled = False
        self._done = threading.Event()
        self._started_at = time.monotonic()
        self._ended_at: float | None = None
        threading.Thread(target=self._run, args=(work,), name="experiment", daemon=True).start()

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._done.is_set()

    @property
    def seconds(self) -> float:
        """From its submission until it was done, or until now."""
        return (self._ended_at or time.monotonic()) - self._started_at

    def wait(self, seconds: float) -> bool:
        """Wait that long at most. Returns whether it is done."""
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Do not start it, if it is still queued. One that runs goes on."""
        self._is_cancelled = True

    def _run(self, work: Callable[[], Result]) -> None:
        with _slots:
            if not self._is_cancelled:
                self._call(work)
        self._ended_at = time.monotonic()
        self._done.set()

    def _call(self, work: Callable[[], Result]) -> None:
        try:
            with computing:
                self.result = work()
        except (ValueError, MemoryError, ModelLoadError) as error:
            self.error = str(error)
        except Exception:
            logging.getLogger(__name__).exception("an experiment failed")
            self.error = _(INTERNAL_ERROR)


class TaskCache:
    """One tab's experiments by name and inputs, the least recently used dropped. `num_requests`: calls of `submit`."""

    def __init__(self) -> None:
        self.num_requests = 0
        self._tasks: OrderedDict[tuple[str, Hashable], Task[Any]] = OrderedDict()

    def submit(self, experiment: str, inputs: Hashable, work: Callable[[], Result]) -> Task[Result]:
        """The task of these inputs, started now if there is none. Queued ones of other inputs are cancelled."""
        self.num_requests += 1
        key = (experiment, inputs)
        for other, task in list(self._tasks.items()):
            if other[0] == experiment and other != key and not task.is_done:
                task.cancel()
                del self._tasks[other]
        task = self._tasks[key] if key in self._tasks else Task(work)
        self._tasks[key] = task
        self._tasks.move_to_end(key)
        while len(self._tasks) > MAX_CACHED:
            self._tasks.popitem(last=False)
        return task


def result_of(experiment: str, inputs: Hashable, work: Callable[[], Result]) -> Result | None:
    """Draw the state of `work`, which `inputs` decide, and return its result; None while it runs or when it failed.

    `work` may raise ValueError with a sentence. `experiment` is the key of the page's controls.
    """
    tasks: TaskCache = st.session_state.setdefault(_TASKS, TaskCache())
    task = tasks.submit(experiment, inputs, work)
    if not task.wait(SECONDS_BEFORE_PROGRESS):
        draw_corrections(experiment)
        _draw_progress(task)
        return None
    if task.error:
        draw_corrections(experiment)
        st.html(notice(task.error, "problem"))
    sentence = _("The engines ran for {seconds:.1f} s.").format(seconds=task.seconds)
    st.html(f'<p class="pv-run" role="status" data-run="over" data-asked="{tasks.num_requests}">{sentence}</p>')
    return task.result


@st.fragment(run_every=SECONDS_BETWEEN_POLLS)
def _draw_progress(task: Task[Result]) -> None:
    if task.is_done:
        st.rerun()
    st.html('<span data-run="running" hidden></span>')
    st.progress(0.0, text=_("Running the engines: {seconds:.0f} s so far").format(seconds=task.seconds))
