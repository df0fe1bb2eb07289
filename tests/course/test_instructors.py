"""The instructors' notes say what the app has: the routes by the minute, an exercise with the engine's answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course.pages import EXPERIMENTS, LESSONS, LIVE_ENGINE, lesson_by_key
from course.routes import ROUTES, Route

NOTES = (Path(__file__).resolve().parents[2] / "docs" / "instructors.md").read_text("utf-8")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.minutes} minutes")
def test_each_route_in_the_notes_equals_the_apps(route: Route) -> None:
    [section] = re.findall(rf"### {route.minutes} minutes: (.*?)(?=\n#|\Z)", NOTES, re.DOTALL)
    assert section.splitlines()[0].rstrip(".").lower() == route.aim.rstrip(".").lower()
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", section, re.MULTILINE)
    assert rows == [(str(stop.minutes), stop.page.title) for stop in route.stops]


def test_every_lesson_has_its_notes() -> None:
    _, _, notes = NOTES.partition("## Lesson by lesson")
    named = " ".join(re.findall(r"\*\*(.+?)\*\*", notes, re.DOTALL))
    words = re.sub(r"\s+", " ", named)
    for page in (*LESSONS, LIVE_ENGINE, *EXPERIMENTS):
        assert page.title in words, page.title


def test_the_example_is_the_engines_own() -> None:
    asked = lesson_by_key("growth").question(7)
    example = re.sub(r"\s+", " ", asked.prompt)
    assert f"> {example}" in NOTES
    assert f"Answer: {asked.right.text}." in NOTES
