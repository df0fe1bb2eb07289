"""The latest checkup of this server, made once for however many tabs ask at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from views.doctor import Checkup, run_checkup


class Checkups:
    def __init__(self, run: Callable[[], Checkup] = run_checkup) -> None:
        self._run = run
        self._lock = threading.Lock()
        self.latest: Checkup | None = None

    def renew(self) -> None:
        """Look again. Whoever asks while somebody else is looking waits for what that one finds."""
        before = self.latest
        with self._lock:
            if self.latest is before:
                self.latest = self._run()
