"""A lesson as a reader uses it in the browser."""

from __future__ import annotations

from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from tests.helpers.lessons import LessonCase
from tests.helpers.map_page import figures_beside, grab_left_end
from tests.helpers.waiting import until_at_rest

PATIENCE = 30_000


class LessonPage:
    def __init__(self, page: Page, base_url: str, case: LessonCase) -> None:
        self.page = page
        self.case = case
        self.address = f"{base_url}/{case.page.url_path}"
        self.map = page.locator(f".st-key-{case.map_key}")
        self.slider = self.map.locator("input.range")

    def open(self, **query: str) -> LessonPage:
        """Go there and wait until the map is painted and the script at rest."""
        self.page.goto(f"{self.address}?{urlencode(query)}")
        self.settle()
        return self

    def settle(self) -> None:
        expect(self.map.locator("svg .heading:visible").first).to_be_visible(timeout=PATIENCE)
        until_at_rest(self.page)

    def figures(self) -> dict[str, str]:
        """The figures beside the map, by key."""
        return figures_beside(self.map)

    def told(self) -> str:
        """The captions below the slider's map and the maps that follow it: they stand for the frame that is shown."""
        maps = (self.page.locator(f".st-key-{key} .captions") for key in self.case.pictures())
        return "\n\n".join(captions.inner_text() for captions in maps)

    def view(self) -> tuple[dict[str, str], str, str]:
        """What the reader sees of their place: figures, captions, question."""
        return self.figures(), self.told(), self.question().inner_text()

    def grab(self) -> float:
        """Press the mouse on the slider's left end; returns the height to drag at."""
        return grab_left_end(self.slider)

    def drag_to(self, share: float, y: float) -> None:
        box = self.slider.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + box["width"] * share, y, steps=6)

    def question(self) -> Locator:
        return self.page.locator(".pv-ask")
