"""Every page of the course, in both themes and three sizes: nothing for axe to find, nothing logged, nothing asked
of any other machine, nothing sticking out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from course.lesson import CoursePage
from course.pages import COURSE, ROOM
from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import AppServer
from tests.helpers.contrast import expect_readable_pictures
from tests.helpers.course_reader import DESKTOP, CourseReader

PAGES = pytest.mark.parametrize("course_page", COURSE, ids=[page.title for page in COURSE])
PHONE, PROJECTOR = (375, 812), (1024, 768)
MOST_PAGE = 2_400
"""Pixels of height on a desktop, nothing unfolded."""


@pytest.fixture(scope="module", params=["light", pytest.param("dark", marks=pytest.mark.slow)])
def reader(browser: Browser, app_server: AppServer, request: pytest.FixtureRequest) -> Iterator[CourseReader]:
    """One tab a theme for all pages."""
    context = browser.new_context(color_scheme=request.param, reduced_motion="reduce", viewport=DESKTOP)
    yield CourseReader(context.new_page(), app_server.url).arrive()
    context.close()


@PAGES
def test_no_accessibility_violation_and_no_page_is_too_long(reader: CourseReader, course_page: CoursePage) -> None:
    reader.turn_to(course_page)
    assert reader.height() <= MOST_PAGE
    reader.open_everything()
    expect_no_violations(reader.page)
    expect_readable_pictures(reader.page)
    reader.check()


@PAGES
@pytest.mark.parametrize("reader", ["light"], indirect=True)
@pytest.mark.slow
def test_no_page_scrolls_sideways(reader: CourseReader, course_page: CoursePage) -> None:
    reader.resize(*DESKTOP.values())  # type: ignore[arg-type]
    reader.turn_to(course_page)
    for width, height in (PHONE, PROJECTOR):
        reader.resize(width, height)
        reader.expect_to_fit(width)
    reader.resize(*DESKTOP.values())  # type: ignore[arg-type]
    reader.check()


HEIGHTS_AFTER_A_CLICK = """async details => {
    details.querySelector("summary").click();
    const heights = [];
    for (let frame = 0; frame < 30; frame += 1) {
        await new Promise(requestAnimationFrame);
        heights.push(Math.round(details.getBoundingClientRect().height));
    }
    return heights.slice(2);  // React paints what was asked for in the first ones
}"""


@pytest.mark.parametrize("reader", ["light"], indirect=True)
def test_an_expander_opens_without_animation_under_reduced_motion(reader: CourseReader) -> None:
    reader.turn_to(ROOM)
    fold = reader.page.locator("details", has_text="Take over a room you present")
    reader.open_everything()  # what is in it loads at the first look
    closed = set(fold.evaluate(HEIGHTS_AFTER_A_CLICK))
    opened = set(fold.evaluate(HEIGHTS_AFTER_A_CLICK))
    assert (len(closed), len(opened)) == (1, 1)
    assert min(opened) > 2 * min(closed)
