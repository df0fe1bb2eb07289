"""A reader who goes through the course in one tab, by its links, and keeps an eye on what the tab complains about."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, ViewportSize, expect

from course.lesson import CoursePage
from course.pages import COURSE
from tests.helpers.navigation import navigation_link
from tests.helpers.page_watch import PageWatch
from tests.helpers.waiting import until, until_at_rest, until_page
from views.navigation import navigation_name

DESKTOP: ViewportSize = {"width": 1280, "height": 900}
SECONDS_FOR_A_PAGE = 30
NOTHING_FADES = """() => !document.querySelector('[data-testid=stMain] [data-stale=true]')
    && [...document.querySelectorAll('[data-testid=stMain] [data-testid=stElementContainer]')]
        .every(element => getComputedStyle(element).opacity === '1')"""
"""What is old is shown pale until its successor has come: no moment to judge contrast."""


class CourseReader:
    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url
        self.watch = PageWatch(page)

    def arrive(self, address: str = "") -> CourseReader:
        """Open an address of the app, as a link would."""
        self.page.goto(f"{self.base_url}/{address}")
        self.settle()
        return self

    def turn_to(self, course_page: CoursePage) -> None:
        """Go to a page by its link in the sidebar."""
        navigation_link(self.page, course_page).click()
        # Its script has begun by then. Before, the page before it may still be there, and at rest.
        expect(self.page).to_have_title(navigation_name(course_page), timeout=SECONDS_FOR_A_PAGE * 1000)
        self.settle()
        expect(self.heading).to_be_visible()

    def visit_all(self) -> None:
        for course_page in COURSE:
            self.turn_to(course_page)

    def settle(self) -> None:
        """Wait until the script has come to its end and every map is painted."""
        until_at_rest(self.page)
        until_page(self.page, NOTHING_FADES, SECONDS_FOR_A_PAGE)
        for the_map in self.maps.all():
            expect(the_map.locator("svg.picture[viewBox]")).to_be_visible(timeout=SECONDS_FOR_A_PAGE * 1000)

    def resize(self, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_timeout(300)

    def open_everything(self) -> None:
        """Unfold what is folded, so that nothing is left unjudged, and let it fade in."""
        for summary in self.page.locator("[data-testid=stMain] details:not([open]) > summary").all():
            if summary.is_visible():
                summary.click()
        self.settle()
        self.page.wait_for_timeout(400)

    @property
    def heading(self) -> Locator:
        return self.page.locator("[data-testid=stMain] h1")

    @property
    def maps(self) -> Locator:
        return self.page.locator(".mm")

    def the_map(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key}")

    def expect_to_fit(self, width: int) -> None:
        """Nothing sticks out of so many pixels."""
        until(lambda: self.widest() <= width, what=f"a page not wider than {width} pixels")

    def widest(self) -> int:
        """Pixels the page is wide, what sticks out included; the app scrolls inside its own main part."""
        return int(
            self.page.evaluate(
                """() => Math.max(document.documentElement.scrollWidth,
                    ...[...document.querySelectorAll('[data-testid=stMain], [data-testid=stMainBlockContainer]')]
                        .map(e => e.getBoundingClientRect().left + e.scrollWidth))"""
            )
        )

    def height(self) -> int:
        """Pixels of what the main part scrolls over."""
        return int(self.page.get_by_test_id("stMain").evaluate("main => main.scrollHeight"))

    def check(self) -> None:
        """No complaint since the last check."""
        complaints, self.watch.complaints = self.watch.complaints, []
        assert complaints == []
