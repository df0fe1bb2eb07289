"""How far a slow start has come, for a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    stage: str
    """"download", "check", "convert" or "load"."""
    done: int
    """Bytes."""
    total: int
    """Bytes; 0 when unknown."""
    sentence: str

    @property
    def fraction(self) -> float:
        """From 0 to 1; 0 while the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total else 0.0


ProgressCallback = Callable[[Progress], None]


def ignore_progress(_progress: Progress) -> None:
    """For callers that show none."""
