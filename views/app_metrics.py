"""`/metrics` of the app: all tabs' engines together, under the names that vLLM uses. Closed unless asked for (door.py).

Gauges are of the engines that are open; counters keep what closed ones have counted, so they never fall.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

from engine.serve.statistics import Counts, Statistics, counts_text
from views.engine_session import EngineSession

GAUGES = ("num_running", "num_waiting", "num_used_blocks")


@dataclass
class _Reading:
    """How far one engine's log has been counted."""

    statistics: Statistics = field(default_factory=Statistics)
    num_events: int = 0

    def go_on(self, session: EngineSession) -> Counts:
        events = session.engine.trace.events[self.num_events :]
        self.num_events += len(events)
        self.statistics(session.engine, events)
        return self.statistics.counts


class AppMetrics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[str, _Reading] = {}
        self._retired = Counts()

    def text(self, sessions: Iterable[EngineSession], model: str) -> str:
        """What has been counted until now. Prometheus may ask from several threads."""
        with self._lock:
            open_ones = {session.name: session for session in sessions}
            for name in self._readings.keys() - open_ones.keys():
                last = self._readings.pop(name).statistics.counts
                self._retired = total((self._retired, replace(last, **dict.fromkeys(GAUGES, 0))))
            counts = [self._readings.setdefault(name, _Reading()).go_on(s) for name, s in open_ones.items()]
            num_blocks = sum(session.engine.config.num_blocks for session in open_ones.values())
            return counts_text(total((self._retired, *counts)), model, num_blocks)


def total(counts: Iterable[Counts]) -> Counts:
    """Field by field."""
    rows = list(counts)
    return Counts(**{field.name: sum(getattr(row, field.name) for row in rows) for field in fields(Counts)})
