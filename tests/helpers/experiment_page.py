"""An experiment of the lab as a person uses it: type, press, choose, drag; then read what stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from course.lesson import CoursePage
from tests.helpers.map_page import cells_of, figures_beside, grab_left_end
from tests.helpers.waiting import until, until_equal, until_page

MODEL_SECONDS = 300.0
"""Patience for a model to load."""
AT_REST = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-run]')?.dataset.run === 'over'"""
TIMES_ASKED = "() => Number(document.querySelector('[data-run]')?.dataset.asked ?? 0)"
"""How often the page asked for its result: once more with every run of its script."""


class ExperimentPage:
    def __init__(self, page: Page, base_url: str, course_page: CoursePage) -> None:
        self.page = page
        self.course_page = course_page
        self.address = f"{base_url}/{course_page.url_path}"

    def open(self, **query: object) -> ExperimentPage:
        """Go there with these values in the address, and wait for the result."""
        self.page.goto(f"{self.address}?{urlencode(query)}")
        heading = self.page.get_by_role("heading", name=self.course_page.title, exact=True)
        expect(heading).to_be_visible(timeout=MODEL_SECONDS * 1000)
        self.settle()
        return self

    def settle(self) -> None:
        """Until the script is at rest and the engines have come to their end."""
        self.page.wait_for_timeout(100)
        until_page(self.page, AT_REST, MODEL_SECONDS)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """What is done within starts the script; afterwards it has come to rest again."""
        before = self.page.evaluate(TIMES_ASKED)
        yield
        until_page(self.page, f"({TIMES_ASKED})() > {before}", MODEL_SECONDS)
        self.settle()

    def type(self, label: str, text: str) -> None:
        """Fill a box and leave it."""
        box = self.page.get_by_label(label, exact=True)
        with self.acting():
            box.fill(text)
            box.press("Tab")

    def press(self, name: str) -> None:
        with self.acting():
            self.page.get_by_role("button", name=name, exact=True).click()

    def choose(self, name: str) -> None:
        """One of the pills."""
        with self.acting():
            self.page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True).click()

    def unfold(self, name: str) -> None:
        """Open what is folded under this name."""
        fold = self.page.locator("details", has_text=name).first
        if fold.get_attribute("open") is None:
            fold.locator("summary").first.click()

    def figure(self, key: str) -> str:
        """A figure of the page itself; those beside a map are the map's."""
        return self.page.locator(f".pv-figures [data-figure='{key}']").inner_text()

    def expect_figure(self, key: str, value: str) -> None:
        expect(self.page.locator(f".pv-figures [data-figure='{key}']")).to_have_text(value)

    def text(self, selector: str) -> str:
        """What an element holds, character for character."""
        content = self.page.locator(selector).text_content()
        assert content is not None
        return content

    def expect_text(self, selector: str, text: str) -> None:
        """Character for character."""
        until_equal(lambda: self.text(selector), text)

    def expect_told(self, words: str) -> None:
        """Somewhere in the page's own paragraphs."""
        until(lambda: words in self.told(), what=f"telling {words!r}")

    def expect_chips(self, selector: str, pieces: list[str]) -> None:
        until_equal(lambda: self.chips(selector), pieces)

    def expect_problem(self, sentence: str | re.Pattern[str]) -> None:
        """Why it cannot be run."""
        expect(self.page.locator(".pv-notice.problem")).to_have_text(sentence)

    def chips(self, selector: str) -> list[str]:
        """The tokens within an element, as drawn."""
        return self.page.locator(f"{selector} .pv-piece:not(.empty)").all_text_contents()

    def rows(self, table: str) -> list[list[str]]:
        """The cells of a table's body."""
        return cells_of(self.page.locator(f"{table} tbody tr"))

    def told(self) -> str:
        """The page's own paragraphs."""
        return "\n".join(self.page.locator(".pv-captions").all_inner_texts())

    def map(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key}")

    def map_figures(self, key: str) -> dict[str, str]:
        """The figures beside a map, by key."""
        return figures_beside(self.map(key))

    def drag_map(self, key: str, share: float) -> None:
        """Drag a map's slider to this share of its width, and let go."""
        slider = self.map(key).locator("input.range")
        with self.acting():
            y, reached = grab_left_end(slider), None
            while (box := slider.bounding_box()) != reached:  # a page that is still arriving makes the slider longer
                assert box is not None
                self.page.mouse.move(box["x"] + box["width"] * share, y, steps=5)
                reached = box
            self.page.mouse.up()

    def standing_at(self, key: str) -> int:
        """The frame a map's slider stands at."""
        return int(self.map(key).locator("input.range").input_value())
