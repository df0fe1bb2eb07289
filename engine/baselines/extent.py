"""Extents of neighbouring slots, and what an allocator of such extents can do.

The contiguous baselines differ only in their allocator: `engine/baselines/free_list.py` has first fit and best fit,
`engine/baselines/buddy.py` the buddy allocator that the paper assumes for Orca (section 6.1).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Extent(NamedTuple):
    """`num_slots` neighbouring slots from `start`."""

    start: int
    num_slots: int

    @property
    def end(self) -> int:
        """The first slot behind the extent."""
        return self.start + self.num_slots


class Allocator(Protocol):
    """Hands out extents of slots and takes them back. Knows nothing of requests or events."""

    name: str

    def size_for(self, num_needed: int) -> int:
        """How long an extent must be found, and is held, for `num_needed` slots."""

    def reserve(self, num_needed: int) -> Extent | None:
        """An extent of `size_for(num_needed)` slots, or None when no free extent is long enough."""

    def free(self, extent: Extent) -> None:
        """Take a reserved extent back. Raises ValueError when it is not a reserved one."""

    def free_extents(self) -> list[Extent]:
        """Everything free, in address order, as the extents this allocator can choose from."""


def gaps_between(held: list[Extent], num_slots: int) -> list[Extent]:
    """What the extents in `held` (any order, not overlapping) leave free of slots `0 .. num_slots - 1`."""
    gaps, start = [], 0
    for extent in sorted(held):
        if extent.start > start:
            gaps.append(Extent(start, extent.start - start))
        start = extent.end
    if start < num_slots:
        gaps.append(Extent(start, num_slots - start))
    return gaps
