"""What a page says of one engine of a source at one moment, counted in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache_view import CacheView
from engine.remote.flow import Second
from engine.remote.forest import Forest, forest_of
from engine.state import CacheState
from engine.trace_source import TraceSource

SECONDS_OF_A_RATE = 10


@dataclass(frozen=True, slots=True)
class Report:
    """One moment of one rank. None: the source does not say.

    num_blocks: different contents stored; num_copies: with repeats. num_stored, num_removed: blocks so far, since the
    server started or, in a partial view, since we look. pool_blocks: size of the pool; occupancy: copies over it.
    stored_per_second, removed_per_second: over the last `SECONDS_OF_A_RATE` seconds, at the newest moment only.
    """

    step: int
    ranks: tuple[int, ...]
    rank: int
    num_blocks: int
    num_copies: int
    num_stored: int
    num_removed: int
    num_forgotten: int
    num_unknown_removed: int
    partial_since: int | None
    missed: tuple[int, int] | None
    started_over: int | None
    pool_blocks: int | None
    occupancy: float | None
    stored_per_second: float | None
    removed_per_second: float | None
    forest: Forest


def report_of(source: TraceSource, state: CacheState, rank: int) -> Report:
    """Count `state`, which is a moment of `source`."""
    view = state.findable.of(rank)
    pool = state.num_blocks or source.facts.num_blocks
    stored, removed = rates(source.flow(), source.quiet_seconds) if state.step == source.last_step else (None, None)
    return Report(
        step=state.step,
        ranks=tuple(sorted(state.findable.ranks)),
        rank=rank,
        num_blocks=len(view.blocks),
        num_copies=view.num_copies,
        num_stored=view.num_stored,
        num_removed=view.num_removed,
        num_forgotten=view.num_forgotten,
        num_unknown_removed=view.num_unknown_removed,
        partial_since=view.partial_since,
        missed=view.missed,
        started_over=view.started_over,
        pool_blocks=pool,
        occupancy=view.num_copies / pool if pool else None,
        stored_per_second=stored,
        removed_per_second=removed,
        forest=forest_of(view),
    )


def first_rank(view: CacheView) -> int:
    return min(view.ranks, default=0)


def rates(flow: Sequence[Second], quiet_seconds: float) -> tuple[float | None, float | None]:
    """Blocks stored and removed a second, up to now, which is so long after the last message; None without times."""
    if not flow:
        return None, None
    now = flow[-1].second + int(quiet_seconds)
    recent = [second for second in flow if second.second > now - SECONDS_OF_A_RATE]
    span = min(SECONDS_OF_A_RATE, now - flow[0].second + 1)
    return sum(s.num_stored for s in recent) / span, sum(s.num_removed for s in recent) / span
