"""First fit and best fit: free memory as a list of runs, and two ways to choose one.

    slots      0        8    12     18     23         33
               [ free 8 ][ B ][free 6][  D  ][ free 10 ]
    first fit  takes the lowest run that is long enough
    best fit   takes the shortest run that is long enough, the lowest of equals

Freed runs join their free neighbours at once, so no two free runs ever touch.
"""

from __future__ import annotations

from bisect import bisect

from engine.runs import Run


class _FreeList:
    """The free runs in address order. Subclasses say which one to cut from."""

    def __init__(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self._runs = [Run(0, num_slots)]

    def _choose(self, num_needed: int) -> int | None:
        """The index of the free run to cut from, or None when none is long enough."""
        raise NotImplementedError

    def size_for(self, num_needed: int) -> int:
        """Exactly what is needed: these allocators round nothing."""
        return num_needed

    def reserve(self, num_needed: int) -> Run | None:
        """The front of the chosen free run; its rest stays free."""
        index = self._choose(num_needed)
        if index is None:
            return None
        chosen = self._runs[index]
        rest = Run(chosen.start + num_needed, chosen.num_slots - num_needed)
        self._runs[index : index + 1] = [rest] if rest.num_slots else []
        return Run(chosen.start, num_needed)

    def free(self, run: Run) -> None:
        """Put the run back in its place and join it with the free runs it touches."""
        index = bisect(self._runs, run)
        before, after = self._runs[max(index - 1, 0) : index], self._runs[index : index + 1]
        self._check_reserved(run, before, after)
        start, end = run.start, run.end
        if before and before[0].end == start:
            start, index = before[0].start, index - 1
        else:
            before = []
        if after and after[0].start == end:
            end = after[0].end
        else:
            after = []
        self._runs[index : index + len(before) + len(after)] = [Run(start, end - start)]

    def free_runs(self) -> list[Run]:
        return list(self._runs)

    def _check_reserved(self, run: Run, before: list[Run], after: list[Run]) -> None:
        inside = run.start >= 0 and run.num_slots >= 1 and run.end <= self._num_slots
        if not inside or any(other.end > run.start and other.start < run.end for other in before + after):
            raise ValueError(f"Slots {run.start} to {run.end - 1} are not a reserved run.")


class FirstFit(_FreeList):
    """The lowest free run that is long enough."""

    name = "first_fit"

    def _choose(self, num_needed: int) -> int | None:
        return next((i for i, run in enumerate(self._runs) if run.num_slots >= num_needed), None)


class BestFit(_FreeList):
    """The shortest free run that is long enough; of equal ones the lowest."""

    name = "best_fit"

    def _choose(self, num_needed: int) -> int | None:
        fitting = [(run.num_slots, i) for i, run in enumerate(self._runs) if run.num_slots >= num_needed]
        return min(fitting)[1] if fitting else None
