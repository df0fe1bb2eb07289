"""A thread that listens to a server until it is stopped."""

from __future__ import annotations

import threading


class StoppableThread(threading.Thread):
    """A daemon thread. Its `run` ends soon after `_stopping` is set."""

    def __init__(self, name: str, seconds_to_stop: float) -> None:
        super().__init__(name=name, daemon=True)
        self._stopping = threading.Event()
        self._seconds_to_stop = seconds_to_stop

    def stop(self) -> None:
        """End the thread, if it was started: what is under way ends first, for at most `seconds_to_stop`."""
        self._stopping.set()
        if self.is_alive():
            self.join(self._seconds_to_stop)
