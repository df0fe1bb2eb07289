"""How late the engine's ticks come, and how long a step takes: figures that say whether the machine keeps up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

REMEMBERED = 4096


@dataclass(frozen=True)
class Health:
    """Milliseconds. `late_*`: from when a tick was due to its begin; `step_*`: what a step took."""

    num_ticks: int
    late_p50: float
    late_p99: float
    late_max: float
    step_p50: float
    step_p95: float


class Lateness:
    """The last ticks. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.num_ticks = 0
        self._late: deque[float] = deque(maxlen=REMEMBERED)
        self._steps: deque[float] = deque(maxlen=REMEMBERED)

    def note(self, late_seconds: float, step_seconds: float) -> None:
        self.num_ticks += 1
        self._late.append(max(late_seconds, 0.0) * 1000)
        self._steps.append(step_seconds * 1000)

    @property
    def health(self) -> Health:
        late, steps = sorted(self._late.copy()), sorted(self._steps.copy())
        return Health(
            self.num_ticks,
            percentile(late, 50),
            percentile(late, 99),
            percentile(late, 100),
            percentile(steps, 50),
            percentile(steps, 95),
        )


def percentile(ordered: list[float], percent: float) -> float:
    """The smallest value that at least so many percent do not exceed; 0 of nothing."""
    if not ordered:
        return 0.0
    return ordered[max(0, -(-len(ordered) * int(percent) // 100) - 1)]
