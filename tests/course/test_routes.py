"""The routes keep their promise: 15, 45 and 90 minutes, in reading order, no page twice."""

from __future__ import annotations

from course.pages import EXPERIMENTS, LESSONS, LIVE_ENGINE, SUMMARY
from course.routes import ROUTES


def test_routes_take_15_45_and_90_minutes():
    assert [route.minutes for route in ROUTES] == [15, 45, 90]


def test_the_longest_route_visits_every_page_that_teaches():
    taught = (*LESSONS, SUMMARY, LIVE_ENGINE, *EXPERIMENTS)
    assert {stop.page.title for stop in ROUTES[-1].stops} == {page.title for page in taught}


def test_no_route_visits_a_page_twice():
    for route in ROUTES:
        titles = [stop.page.title for stop in route.stops]
        assert len(titles) == len(set(titles))
