"""What a page says of one engine of a source at one moment, counted in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.remote.radix_tree import RadixTree, radix_tree_of
from engine.trace.cache_events import MessageReceived
from engine.trace.cache_view import CacheView
from engine.trace.per_second import SecondStats
from engine.trace.source import TraceSource
from engine.trace.state import CacheState

SECONDS_OF_A_RATE = 10


@dataclass(frozen=True, slots=True)
class Report:
    """One moment of one rank. None: the source does not say.

    num_blocks: different contents stored; num_copies: with repeats. num_stored, num_removed: blocks so far, since the
    server started or, in a partial view, since we look. pool_blocks: size of the pool; occupancy: copies over it.
    stored_per_second, removed_per_second: over the `SECONDS_OF_A_RATE` seconds up to the moment, by the server's clock.
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
    radix_tree: RadixTree

    @property
    def num_extra_copies(self) -> int:
        """Copies beyond the first of each content."""
        return self.num_copies - self.num_blocks


def report_of(source: TraceSource, state: CacheState, rank: int) -> Report:
    """Count `state`, which is a moment of `source`."""
    view = state.prefix_cache.of(rank)
    pool = state.num_blocks or source.facts.num_blocks
    stored, removed = _rates_at(source, state.step)
    return Report(
        step=state.step,
        ranks=tuple(sorted(state.prefix_cache.ranks)),
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
        radix_tree=radix_tree_of(view),
    )


def first_rank(view: CacheView) -> int:
    """The lowest data-parallel rank; 0 where nothing is stored yet."""
    return min(view.ranks, default=0)


def _rates_at(source: TraceSource, step: int) -> tuple[float | None, float | None]:
    """The rates at a moment: at an earlier one than the newest, up to the second in which its message was sent."""
    if step == source.last_step:
        return rates(source.per_second(), source.quiet_seconds)
    times = [event.timestamp for event in source.events_of(step) if isinstance(event, MessageReceived)]
    if not times:
        return None, None
    return rates([second for second in source.per_second() if second.second <= int(times[-1])], 0.0)


def rates(flow: Sequence[SecondStats], quiet_seconds: float) -> tuple[float | None, float | None]:
    """Blocks stored and removed a second, up to now, which is so long after the last message; None without times."""
    if not flow:
        return None, None
    now = flow[-1].second + int(quiet_seconds)
    recent = [second for second in flow if second.second > now - SECONDS_OF_A_RATE]
    span = min(SECONDS_OF_A_RATE, now - flow[0].second + 1)
    return sum(s.num_stored for s in recent) / span, sum(s.num_removed for s in recent) / span
