"""The same thing measured several times."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """The same thing measured several times, in ms."""

    times_ms: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median, in ms."""
        return median(self.times_ms)

    @property
    def lowest(self) -> float:
        """The shortest, in ms."""
        return min(self.times_ms)

    @property
    def highest(self) -> float:
        """The longest, in ms."""
        return max(self.times_ms)
