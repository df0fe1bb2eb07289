"""First fit and best fit: free memory as a list of extents, and two ways to choose one.

    slots      0        8    12     18     23         33
               [ free 8 ][ B ][free 6][  D  ][ free 10 ]
    first fit  takes the lowest extent that is long enough
    best fit   takes the shortest extent that is long enough, the lowest of equals

Freed extents join their free neighbours at once, so no two free extents ever touch.
"""

from __future__ import annotations

from bisect import bisect

from engine.baselines.extent import Extent
from engine.i18n import _


class _FreeList:
    """The free extents in address order. Subclasses say which one to cut from."""

    def __init__(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self._extents = [Extent(0, num_slots)]

    def _choose(self, num_needed: int) -> int | None:
        """The index of the free extent to cut from, or None when none is long enough."""
        raise NotImplementedError

    def size_for(self, num_needed: int) -> int:
        """Exactly what is needed: these allocators round nothing."""
        return num_needed

    def reserve(self, num_needed: int) -> Extent | None:
        """The front of the chosen free extent; its rest stays free."""
        index = self._choose(num_needed)
        if index is None:
            return None
        chosen = self._extents[index]
        rest = Extent(chosen.start + num_needed, chosen.num_slots - num_needed)
        self._extents[index : index + 1] = [rest] if rest.num_slots else []
        return Extent(chosen.start, num_needed)

    def free(self, extent: Extent) -> None:
        """Put the extent back in its place and join it with the free extents it touches."""
        index = bisect(self._extents, extent)
        before, after = self._extents[max(index - 1, 0) : index], self._extents[index : index + 1]
        self._check_reserved(extent, before, after)
        start, end = extent.start, extent.end
        if before and before[0].end == start:
            start, index = before[0].start, index - 1
        else:
            before = []
        if after and after[0].start == end:
            end = after[0].end
        else:
            after = []
        self._extents[index : index + len(before) + len(after)] = [Extent(start, end - start)]

    def free_extents(self) -> list[Extent]:
        return list(self._extents)

    def _check_reserved(self, extent: Extent, before: list[Extent], after: list[Extent]) -> None:
        inside = extent.start >= 0 and extent.num_slots >= 1 and extent.end <= self._num_slots
        if not inside or any(other.end > extent.start and other.start < extent.end for other in before + after):
            raise ValueError(
                _("Slots {start} to {end} are not a reserved region.").format(start=extent.start, end=extent.end - 1)
            )


class FirstFit(_FreeList):
    """The lowest free extent that is long enough."""

    name = "first_fit"

    def _choose(self, num_needed: int) -> int | None:
        return next((i for i, extent in enumerate(self._extents) if extent.num_slots >= num_needed), None)


class BestFit(_FreeList):
    """The shortest free extent that is long enough; of equal ones the lowest."""

    name = "best_fit"

    def _choose(self, num_needed: int) -> int | None:
        fitting = [(extent.num_slots, i) for i, extent in enumerate(self._extents) if extent.num_slots >= num_needed]
        return min(fitting)[1] if fitting else None
