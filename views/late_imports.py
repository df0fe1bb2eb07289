"""What is too heavy for the first page is imported once that one has been served, so that no reader waits for it later.

pandas and what charts and tables need besides take a third of a second of a processor, more on one that is busy. When
a room turns to the first page with a chart, all would wait for them at once. (Plotly's own modules come with Streamlit;
torch comes with the model.)
"""

from __future__ import annotations

import gc
import importlib
import threading
from functools import cache

HEAVY = ("pandas", "pyarrow", "views.charts")
SECONDS_FOR_THE_FIRST_PAGE = 1.5
"""In which its browser fetches what it needs, without a second thread at work beside it."""


@cache
def import_what_is_heavy_soon() -> None:
    """Call at the end of a run of the script; what comes after the first one asks in vain."""
    timer = threading.Timer(SECONDS_FOR_THE_FIRST_PAGE, _import_what_is_heavy)
    timer.daemon = True
    timer.start()


def _import_what_is_heavy() -> None:
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()  # modules live for ever: no later collection need walk them
