"""A tab in a room, as a person uses it: the bar above every page, the Room page, the presenter's controls."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect

from course.lesson import CoursePage
from tests.helpers.live_page import MODEL_MILLISECONDS
from tests.helpers.navigation import navigation_link
from tests.helpers.page_watch import PageWatch
from tests.helpers.waiting import HELD, until_at_rest

PATIENCE = 40_000
"""Milliseconds for what goes through another tab and the server."""


class RoomPage:
    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url
        self.watch = PageWatch(page, urlsplit(base_url).hostname or "")

    # -- going in --

    def start(self, **settings: int) -> str:
        """Start a room and present it. Returns its code."""
        self.page.goto(f"{self.base_url}/room")
        expect(self.button("Start a room")).to_be_visible(timeout=PATIENCE)
        for label, value in settings.items():
            box = self.page.get_by_label(label, exact=True)
            expect(box).not_to_have_value("")  # it mounts empty
            box.fill(str(value))
            self.page.keyboard.press("Tab")
        self.settle()
        self.button("Start a room").click()
        self.expect_engine()
        code = self.page.locator("[data-room-code]").get_attribute("data-room-code")
        assert code is not None
        return code

    def join(self, code: str, name: str = "") -> RoomPage:
        """By the link."""
        self.page.goto(f"{self.base_url}/room?room={code}")
        self.button("Join").wait_for(timeout=PATIENCE)
        self.settle()
        self.page.get_by_label("Your name, if you like").fill(name)
        self.button("Join").click()
        expect(self.mode).to_have_text("Explore on my own", timeout=PATIENCE)
        return self

    def expect_engine(self) -> None:
        expect(self.page.locator("[data-figure=step]")).to_be_visible(timeout=MODEL_MILLISECONDS)
        self.settle()

    # -- what a person does --

    def send(self, prompt: str) -> None:
        self.page.get_by_label("Your prompt").fill(prompt)
        self.button("Send to the room").click()
        self.settle()

    def turn_to(self, course_page: CoursePage) -> None:
        navigation_link(self.page, course_page).click()
        self.expect_page(course_page)

    def press_in_map(self, key: str, *, times: int = 1) -> None:
        """An arrow key on the slider of the first map."""
        expect(self.page.locator(HELD)).to_have_count(0)
        self.slider.focus()
        for _ in range(times):
            self.page.keyboard.press(key)

    def settle(self) -> None:
        until_at_rest(self.page)

    # -- what a person sees --

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    @property
    def bar(self) -> Locator:
        return self.page.locator(".st-key-room_bar .bar")

    @property
    def words(self) -> Locator:
        return self.bar.locator(".words")

    @property
    def mode(self) -> Locator:
        return self.bar.locator(".mode")

    @property
    def stuck(self) -> Locator:
        return self.bar.locator(".stuck")

    @property
    def slider(self) -> Locator:
        return self.page.locator(".mm input[type=range]").first

    def figure(self, key: str) -> Locator:
        return self.page.locator(f"[data-figure='{key}']").first

    def expect_figure(self, key: str, value: str) -> None:
        expect(self.figure(key)).to_have_text(value, timeout=PATIENCE)

    def expect_page(self, course_page: CoursePage) -> None:
        expect(self.page.locator("[data-testid=stMain] h1")).to_have_text(course_page.title, timeout=PATIENCE)
        self.settle()

    def requests(self) -> list[tuple[str, str, bool]]:
        """Name, status and whether it is one's own, in the order of the list."""
        items = self.page.locator("[data-request]").evaluate_all(
            "items => items.map(item => [item.dataset.request, item.dataset.status, item.innerText])"
        )
        return [(name, status, "yours" in words) for name, status, words in items]
