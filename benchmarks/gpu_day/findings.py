"""What a part of the GPU day tells: rows it measured, targets held against them, remarks, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Row = dict[str, object]
Status = Literal["done", "failed", "not here", "stopped", "not started"]


class NotHereError(Exception):
    """A part has nothing to measure on this machine. The message says what it lacks."""


@dataclass(frozen=True)
class Measured:
    """One row of figures by name, units in the names."""

    row: Row


@dataclass(frozen=True)
class Target:
    """`measured` is to be at least `limit`, or at most. A CPU is not judged: the targets are for cards."""

    name: str
    measured: float
    limit: float
    at_least: bool
    on_card: bool

    @property
    def verdict(self) -> Literal["pass", "fail", "not judged on a CPU"]:
        if not self.on_card:
            return "not judged on a CPU"
        is_met = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        return "pass" if is_met else "fail"


@dataclass(frozen=True)
class Remark:
    """One line of text."""

    text: str


Finding = Measured | Target | Remark


@dataclass(frozen=True)
class Outcome:
    """How a part ended: why it did not run to its end, if it did not, and after how many seconds."""

    status: Status
    detail: str
    seconds: float
    traceback: str = ""
    has_lost_device: bool = False
    """Whether this process can use the GPU no more (kernels/device_lost.py)."""
