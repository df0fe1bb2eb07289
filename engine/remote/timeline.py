"""Second by second on one axis: blocks and evictions from the stream, hit rate and preemptions from the metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.remote.metrics import MetricsSample
from engine.trace.per_second import SecondStats

SECONDS_OF_A_HIT_RATE = 10
SECONDS_SHOWN = 300


@dataclass(frozen=True, slots=True)
class TimelineSecond:
    """One second, `second` since 1970 by the server's clock. None: not known.

    num_copies: blocks stored at its end, copies counted; num_stored, num_evicted: blocks in it.
    hit_rate: prompt tokens found in the prefix cache over those looked up, 0 to 1, in the `SECONDS_OF_A_HIT_RATE`
    seconds up to its end. kv_usage: the share of the pool that requests hold, 0 to 1. num_preempted: requests in it.
    """

    second: int
    num_copies: int | None = None
    num_stored: int | None = None
    num_evicted: int | None = None
    hit_rate: float | None = None
    kv_usage: float | None = None
    num_preempted: int | None = None


@dataclass
class _Looked:
    """What the metrics say of one second: counts since the look before, and the newest gauges."""

    queries: float = 0.0
    hits: float = 0.0
    num_preempted: int | None = None
    hit_rate: float | None = None
    kv_usage: float | None = None


def timeline_of(
    flow: Sequence[SecondStats],
    samples: Sequence[MetricsSample],
    by_server_clock: Callable[[float], float] = lambda time: time,
    last: int = SECONDS_SHOWN,
) -> list[TimelineSecond]:
    """The newest `last` seconds, without gaps. `by_server_clock`: a sample's time, by the clock of `flow`."""
    looked = _looked(samples, by_server_clock)
    known = {stats.second: stats for stats in flow}
    if not looked and not known:
        return []
    newest = max([*looked, *known])
    first = max(min([*looked, *known]), newest - last + 1)
    copies = next((stats.num_copies for stats in reversed(flow) if stats.second < first), None)
    seconds = []
    for second in range(first, newest + 1):
        stats = known.get(second)
        if stats is not None:
            copies = stats.num_copies
        quiet = None if copies is None else 0
        look = looked.get(second, _Looked())
        seconds.append(
            TimelineSecond(
                second,
                num_copies=copies,
                num_stored=quiet if stats is None else stats.num_stored,
                num_evicted=quiet if stats is None else stats.num_removed,
                hit_rate=_hit_rate(looked, second),
                kv_usage=look.kv_usage,
                num_preempted=look.num_preempted,
            )
        )
    return seconds


def _looked(samples: Sequence[MetricsSample], by_server_clock: Callable[[float], float]) -> dict[int, _Looked]:
    looked: dict[int, _Looked] = {}
    for before, sample in zip((None, *samples), samples, strict=False):
        look = looked.setdefault(int(by_server_clock(sample.time)), _Looked())
        look.kv_usage, look.hit_rate = sample.kv_usage, sample.hit_rate
        if before is None:
            continue
        queries = _grown(before.prefix_queries, sample.prefix_queries)
        hits = _grown(before.prefix_hits, sample.prefix_hits)
        if queries is not None and hits is not None:
            look.queries += queries
            look.hits += hits
        preempted = _grown(before.num_preemptions, sample.num_preemptions)
        if preempted is not None:
            look.num_preempted = (look.num_preempted or 0) + round(preempted)
    return looked


def _grown(before: float | None, after: float | None) -> float | None:
    """How much a counter has grown; None where it is not known, or where it began again."""
    return None if before is None or after is None or after < before else after - before


def _hit_rate(looked: Mapping[int, _Looked], second: int) -> float | None:
    """From the counters; where none has grown, from the gauge of a server that has one."""
    looks = [looked[s] for s in range(second - SECONDS_OF_A_HIT_RATE + 1, second + 1) if s in looked]
    queries = sum(look.queries for look in looks)
    if queries > 0:
        return min(sum(look.hits for look in looks) / queries, 1.0)
    return looked[second].hit_rate if second in looked else None
