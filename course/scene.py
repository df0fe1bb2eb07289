"""Scene: a trace, and which of its steps belongs to which value of the control that is dragged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.trace.state import CacheState
from engine.trace.trace import Trace


@dataclass(frozen=True)
class Scene:
    """`frame_of[value]` is the step of `trace` to show for that value; `control` says what the values count."""

    trace: Trace
    frame_of: Mapping[int, int]
    control: str

    @property
    def values(self) -> tuple[int, ...]:
        """Every value that has a frame, in rising order."""
        return tuple(sorted(self.frame_of))

    def at(self, value: int) -> CacheState:
        """The state for that value of the control. Raises KeyError when it has no frame."""
        return self.trace.at(self.frame_of[value])
