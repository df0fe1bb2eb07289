"""Ways through the course for 15, 45 and 90 minutes: which pages, and how long each."""

from __future__ import annotations

from dataclasses import dataclass

from course.lesson import CoursePage
from course.pages import COURSE, SUMMARY
from engine.i18n import N_


@dataclass(frozen=True)
class Stop:
    """A page of a route and the minutes it takes there."""

    page: CoursePage
    minutes: int


@dataclass(frozen=True)
class Route:
    """`length`: the minutes it is meant to take. `aim`: what a group can say at the end of it."""

    length: int
    aim: str

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The pages that have minutes on a route of this length, in reading order; the summary closes it."""
        pages = sorted((page for page in COURSE if self.length in page.minutes), key=lambda page: page is SUMMARY)
        return tuple(Stop(page, page.minutes[self.length]) for page in pages)

    @property
    def minutes(self) -> int:
        """What its pages take together."""
        return sum(stop.minutes for stop in self.stops)


ROUTES = (
    Route(15, aim=N_("The problem, the solution, and a live engine.")),
    Route(45, aim=N_("Each main idea once, with a prediction before it.")),
    Route(90, aim=N_("The whole course, with time for experiments and questions.")),
)
