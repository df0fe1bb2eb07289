"""Settings of the whole process that keep readers from waiting: thread switching, garbage collection, late imports.

A full garbage collection stops every thread: for 40 to 60 ms on two cores in a room of forty, about every five seconds
(mostly for what Streamlit leaves behind after each script run). So it is made while nothing is due, and modules and
weights, which live as long as the process, are frozen out of it.
"""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from functools import cache

SWITCH_SECONDS = 0.0005
"""How long a thread may compute before one that waits gets its turn. When a room changes pages, the engine's thread
waits for every tab's: twenty busy threads made 90 of 100 ticks up to 107 ms late at Python's own 5 ms, and 22 ms so."""

COLLECTION_SECONDS = 0.1
SHARE_OF_THRESHOLD = 0.7
"""Python collects in full when its oldest generation has counted to the threshold; this is soon enough before."""

HEAVY_MODULES = ("pandas", "pyarrow", "views.elements.charts")
"""Imported after the first page: a third of a second of one processor. When a room opens the first page with a chart,
every tab would wait for them. (Plotly's own modules come with Streamlit; torch comes with the model.)"""
FIRST_PAGE_SECONDS = 1.5
"""In which the first browser fetches what it needs, without a second thread at work beside it."""


def shorten_switch_interval() -> None:
    """Let other threads run more often while one computes."""
    sys.setswitchinterval(SWITCH_SECONDS)


def collect_garbage_if_due(free_seconds: float) -> bool:
    """Collect in full if Python would do so soon and `free_seconds`, in which nothing is due, are enough.

    Returns whether it was done.
    """
    oldest, threshold = gc.get_count()[2], gc.get_threshold()[2]
    if free_seconds < COLLECTION_SECONDS or oldest < SHARE_OF_THRESHOLD * threshold:
        return False
    gc.collect()
    return True


@cache
def import_heavy_modules_soon() -> None:
    """Import HEAVY_MODULES in a thread, shortly after the first script run. Only the first call does anything."""
    timer = threading.Timer(FIRST_PAGE_SECONDS, _import_heavy_modules)
    timer.daemon = True
    timer.start()


def _import_heavy_modules() -> None:
    for name in HEAVY_MODULES:
        importlib.import_module(name)
    gc.freeze()  # modules live as long as the process: no later collection need walk them
