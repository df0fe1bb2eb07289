"""Ways through the course for 15, 45 and 90 minutes: which pages, how long each, what is skipped."""

from __future__ import annotations

from dataclasses import dataclass

from views.course import (
    BATCH,
    BLOCK_TABLE,
    EQUATION,
    GROWTH,
    LIVE_ENGINE,
    PREEMPTION,
    RACE,
    RESERVED_SPACE,
    SABOTAGE,
    SHARING,
    SHUFFLE,
    SUMMARY,
    WASTE_BETWEEN,
    WHAT_IS_CACHED,
    WHY_NOT_SHARED,
    CoursePage,
)


@dataclass(frozen=True)
class Stop:
    page: CoursePage
    minutes: int


@dataclass(frozen=True)
class Route:
    """`aim` is what a group can say at the end of it."""

    aim: str
    stops: tuple[Stop, ...]

    @property
    def minutes(self) -> int:
        return sum(stop.minutes for stop in self.stops)


ROUTES = (
    Route(
        "The problem and the fix, then see it live.",
        (Stop(RESERVED_SPACE, 4), Stop(GROWTH, 4), Stop(BLOCK_TABLE, 3), Stop(LIVE_ENGINE, 4)),
    ),
    Route(
        "Every idea once, with a prediction before each.",
        (
            Stop(RESERVED_SPACE, 6),
            Stop(WASTE_BETWEEN, 6),
            Stop(GROWTH, 7),
            Stop(BLOCK_TABLE, 7),
            Stop(SHARING, 9),
            Stop(LIVE_ENGINE, 10),
        ),
    ),
    Route(
        "The whole course, with time to break things and to ask.",
        (
            Stop(WHAT_IS_CACHED, 7),
            Stop(RESERVED_SPACE, 6),
            Stop(WASTE_BETWEEN, 7),
            Stop(GROWTH, 8),
            Stop(BLOCK_TABLE, 8),
            Stop(SHARING, 11),
            Stop(BATCH, 6),
            Stop(LIVE_ENGINE, 9),
            Stop(EQUATION, 4),
            Stop(SHUFFLE, 4),
            Stop(SABOTAGE, 5),
            Stop(RACE, 6),
            Stop(WHY_NOT_SHARED, 4),
            Stop(PREEMPTION, 3),
            Stop(SUMMARY, 2),
        ),
    ),
)
