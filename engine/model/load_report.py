"""What a caller hears while a model is fetched and loaded: how far it has come, or an error in one plain sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class ModelLoadError(Exception):
    """The model cannot be loaded; the message says why and what to do about it."""


class ModelUnavailableError(ModelLoadError):
    """The weights are not on this machine and cannot be fetched now (no network, no disk space, not found)."""


class UnsupportedModelError(ModelLoadError):
    """The weights are there, but this engine does not know how to run them."""


@dataclass(frozen=True)
class Progress:
    """How far loading has come, for a progress bar."""

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
