"""How late the engine's ticks come, and how long a step takes: figures that say whether the machine keeps up."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

REMEMBERED = 4096


@dataclass(frozen=True)
class Health:
    """Milliseconds. `late_*`: from when a tick was due to its begin; `step_*`: what a step took."""

    num_ticks: int
    late_p99: float
    late_max: float
    step_p50: float
    step_p95: float


class TickLatency:
    """The last ticks. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.num_ticks = 0
        self._late: deque[float] = deque(maxlen=REMEMBERED)
        self._steps: deque[float] = deque(maxlen=REMEMBERED)

    def record(self, late_seconds: float, step_seconds: float) -> None:
        """Add one tick: how late it began, and how long its step took."""
        self.num_ticks += 1
        self._late.append(max(late_seconds, 0.0) * 1000)
        self._steps.append(step_seconds * 1000)

    @property
    def health(self) -> Health:
        """The percentiles of the ticks remembered."""
        late, steps = self._late.copy(), self._steps.copy()
        return Health(
            self.num_ticks,
            percentile(late, 99),
            max(late, default=0.0),
            percentile(steps, 50),
            percentile(steps, 95),
        )


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that `percent` (1 to 99) of the values do not exceed, interpolated between neighbours; 0 of nothing."""
    if len(values) < 2:
        return sum(values)
    return quantiles(values, n=100, method="inclusive")[percent - 1]
