"""The buddy allocator: every extent is a power of two long and starts at a multiple of its length.

The paper assumes that Orca places requests this way (section 6.1).

    16 free                  [              16              ]
    reserve 3 (holds 4)      [A: 4 ][  4   ][       8       ]    split, split
    free A                   [              16              ]    merge, merge

A block is split in halves until one half just holds the need; a freed block merges with its buddy (the other
half, at `start ^ length`) for as long as the buddy is free too. Memory whose size is no power of two is a row
of blocks, largest first (40 slots: 32 and 8).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from engine.baselines.extent import Extent
from engine.i18n import _


def power_of_two_at_least(count: int) -> int:
    """The smallest power of two that is not below `count`; 0 for 0. (25 -> 32, 32 -> 32)"""
    return 1 << (count - 1).bit_length() if count else 0


def buddy_blocks(free: Extent) -> Iterator[Extent]:
    """The blocks that stand for a stretch of free memory, once all buddies have merged."""
    start = free.start
    while start < free.end:
        aligned = start & -start or free.end
        longest_fitting = 1 << ((free.end - start).bit_length() - 1)
        size = min(aligned, longest_fitting)
        yield Extent(start, size)
        start += size


class BuddyAllocator:
    """Takes the shortest block that holds the need, the lowest of equals, and splits it down."""

    name = "buddy"

    def __init__(self, num_slots: int) -> None:
        self._free: dict[int, list[int]] = {}
        self._held: set[Extent] = set()
        for block in buddy_blocks(Extent(0, num_slots)):
            self._add_free(block)

    def size_for(self, num_needed: int) -> int:
        """`num_needed` rounded up to a power of two. The slots above the need are never used (section 3.1)."""
        return power_of_two_at_least(num_needed)

    def reserve(self, num_needed: int) -> Extent | None:
        """See Allocator."""
        size = self.size_for(num_needed)
        found = min((s for s, starts in self._free.items() if s >= size and starts), default=None)
        if found is None:
            return None
        block = self._split(Extent(self._free[found].pop(0), found), size)
        self._held.add(block)
        return block

    def free(self, extent: Extent) -> None:
        """See Allocator."""
        if extent not in self._held:
            raise ValueError(
                _("Slots {start} to {end} are not a reserved region.").format(start=extent.start, end=extent.end - 1)
            )
        self._held.remove(extent)
        self._add_free(self._merge(extent))

    def free_extents(self) -> list[Extent]:
        """See Allocator."""
        return sorted(Extent(start, size) for size, starts in self._free.items() for start in starts)

    def _split(self, block: Extent, size: int) -> Extent:
        """Halve the block until it is `size` long; the upper halves become free."""
        while block.num_slots > size:
            half = block.num_slots // 2
            self._add_free(Extent(block.start + half, half))
            block = Extent(block.start, half)
        return block

    def _merge(self, block: Extent) -> Extent:
        """Join the block with its buddy, and the result with its own, while the buddy is free."""
        while (buddy := block.start ^ block.num_slots) in self._free.get(block.num_slots, ()):
            self._free[block.num_slots].remove(buddy)
            block = Extent(min(block.start, buddy), 2 * block.num_slots)
        return block

    def _add_free(self, block: Extent) -> None:
        insort(self._free.setdefault(block.num_slots, []), block.start)
