"""No computation while the interpreter shuts down.

At its exit Python ends each daemon thread where that next asks for the interpreter's lock. Within PyTorch this unwinds
C++ that may not be unwound, and the whole process aborts: "terminate called without an active exception". So whatever
computes with PyTorch and may be called from such a thread is marked `@computing`.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import ContextDecorator

SECONDS = 3.0
"""How long the exit waits. What takes longer, a download or the first compilation, spends its time outside PyTorch."""


class Computing(ContextDecorator):
    """Entered around a computation. Once closed, at interpreter exit, it waits for computations under way; a later one
    raises SystemExit in any thread but the main one, which ends that thread silently."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_inside = 0
        self._is_closed = False

    def __enter__(self) -> None:
        with self._changed:
            if self._is_closed and threading.current_thread() is not threading.main_thread():
                raise SystemExit
            self._num_inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._changed:
            self._num_inside -= 1
            if self._is_closed:
                self._changed.notify_all()

    def close(self, seconds: float = SECONDS) -> bool:
        """Admit nothing new and wait for what is inside. Returns whether it has left within `seconds`."""
        with self._changed:
            self._is_closed = True
            return self._changed.wait_for(lambda: not self._num_inside, seconds)


computing = Computing()
atexit.register(computing.close)
