"""Runs of neighbouring slots, and what an allocator of such runs can do.

The contiguous baselines differ only in their allocator: `engine/fit.py` has first fit and best fit,
`engine/buddy.py` the buddy allocator that the paper assumes for Orca (section 6.1).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Run(NamedTuple):
    """`num_slots` neighbouring slots from `start`."""

    start: int
    num_slots: int

    @property
    def end(self) -> int:
        """The first slot behind the run."""
        return self.start + self.num_slots


class Allocator(Protocol):
    """Hands out runs of slots and takes them back. Knows nothing of requests or events."""

    name: str

    def size_for(self, num_needed: int) -> int:
        """How long a run must be found, and is held, for `num_needed` slots."""

    def reserve(self, num_needed: int) -> Run | None:
        """A run of `size_for(num_needed)` slots, or None when no free run is long enough."""

    def free(self, run: Run) -> None:
        """Take a reserved run back. Raises ValueError when it is not a reserved one."""

    def free_runs(self) -> list[Run]:
        """Everything free, in address order, as the runs this allocator can choose from."""


def gaps_between(held: list[Run], num_slots: int) -> list[Run]:
    """What the runs in `held` (any order, not overlapping) leave free of slots `0 .. num_slots - 1`."""
    gaps, start = [], 0
    for run in sorted(held):
        if run.start > start:
            gaps.append(Run(start, run.start - start))
        start = run.end
    if start < num_slots:
        gaps.append(Run(start, num_slots - start))
    return gaps
