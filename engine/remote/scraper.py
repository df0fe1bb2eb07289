"""A thread that looks at a server's HTTP side once a second: its metrics and, once, the name of its model."""

from __future__ import annotations

import threading
import time
from collections import deque

from engine.remote.addresses import Address
from engine.remote.http import HttpError, get, get_json
from engine.remote.metrics import MetricsSample, read_metrics

SECONDS_BETWEEN_LOOKS = 1.0
MAX_SAMPLES = 900
SECONDS_TO_STOP = 5.0


class Scraper:
    """`problem`: why the last look failed, in one sentence, or nothing."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.model: str | None = None
        self.problem = ""
        self._samples: deque[MetricsSample] = deque(maxlen=MAX_SAMPLES)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    @property
    def samples(self) -> tuple[MetricsSample, ...]:
        return tuple(self._samples)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)

    def look(self) -> None:
        """One look. A failure is kept in words, and the next look tries again."""
        try:
            if self.model is None:
                self.model = _first_model(self.address)
            self._samples.append(read_metrics(get(self.address, "/metrics"), time.time()))
        except HttpError as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(SECONDS_BETWEEN_LOOKS)


def _first_model(address: Address) -> str | None:
    try:
        return str(get_json(address, "/v1/models")["data"][0]["id"])[:200]
    except (KeyError, IndexError, TypeError):
        return None
