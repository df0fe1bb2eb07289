"""Python's full garbage collection, made while nothing is due rather than whenever Python comes to it.

It stops every thread: for 40 to 60 ms on two cores in a room of forty, about every five seconds (mostly for what
Streamlit leaves behind after each run of a page). Whoever knows that the next moments are free makes it first.
"""

from __future__ import annotations

import gc

SECONDS_NEEDED = 0.1
SHARE_OF_THRESHOLD = 0.7
"""Python collects in full when its oldest generation has counted to the threshold; this is soon enough before."""


def collect_if_due(seconds_free: float) -> bool:
    """Collect in full if Python would do so soon, and so many seconds are enough. Whether it was done."""
    oldest, threshold = gc.get_count()[2], gc.get_threshold()[2]
    if seconds_free < SECONDS_NEEDED or oldest < SHARE_OF_THRESHOLD * threshold:
        return False
    gc.collect()
    return True
