"""A thread that scrapes a server once a second: its metrics and, once, the name of its model."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from engine.remote.addresses import Address
from engine.remote.http import HttpError, get, get_json
from engine.remote.metrics import PREFIXES, MetricsSample, read_metrics
from engine.remote.stoppable_thread import StoppableThread

POLL_SECONDS = 1.0
MAX_SAMPLES = 900
SECONDS_TO_STOP = 5.0


class Scraper(StoppableThread):
    """`problem`: why the last scrape failed, in one sentence, or nothing. `on_sample`: takes each sample, too."""

    def __init__(self, address: Address, on_sample: Callable[[MetricsSample], None] = lambda _sample: None) -> None:
        super().__init__("metrics", SECONDS_TO_STOP)
        self.address = address
        self._on_sample = on_sample
        self.model: str | None = None
        self.problem = ""
        self._samples: deque[MetricsSample] = deque(maxlen=MAX_SAMPLES)

    @property
    def samples(self) -> tuple[MetricsSample, ...]:
        """The samples kept, the newest last."""
        return tuple(self._samples)

    def scrape(self) -> None:
        """Take one sample. A failure is kept in `problem`, and the next scrape tries again."""
        try:
            if self.model is None:
                self.model = first_model(self.address)
            sample = read_metrics(get(self.address, "/metrics"), time.time())
        except HttpError as error:
            self.problem = str(error)
            return
        self._samples.append(sample)
        self._on_sample(sample)
        self.problem = ""
        if sample.server is None:
            self.problem = f"{self.address}/metrics holds no metric that is known here: none begins with {PREFIXES}."

    def run(self) -> None:
        """The thread's work."""
        while not self._stopping.is_set():
            self.scrape()
            self._stopping.wait(POLL_SECONDS)


def first_model(address: Address) -> str | None:
    """None where the server names none: Ray's metrics, for one, are at a port without an API."""
    try:
        return str(get_json(address, "/v1/models")["data"][0]["id"])[:200]
    except (KeyError, IndexError, TypeError):
        return None
    except HttpError as error:
        if error.status is None:
            raise
        return None
