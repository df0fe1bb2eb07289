"""A lesson as a reader uses it in the browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlparse

from playwright.sync_api import Locator, Page, expect

from tests.helpers.lessons import LessonCase

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
        self.page.wait_for_timeout(150)
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=PATIENCE)

    def figures(self) -> dict[str, str]:
        """The figures beside the map, by key."""
        cells = self.map.locator("dl.figures dd:visible").all()
        return {str(cell.get_attribute("data-figure")): cell.inner_text() for cell in cells}

    def told(self) -> str:
        """The beats below the slider's map and the maps that follow it: they stand for the frame that is shown."""
        maps = (self.page.locator(f".st-key-{key} .beats") for key in self.case.pictures())
        return "\n\n".join(beats.inner_text() for beats in maps)

    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlparse(self.page.url).query).items()}

    def grab(self) -> float:
        """Press the mouse on the slider's left end; returns the height to drag at."""
        box = self.slider.bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + 3, y)
        self.page.mouse.down()
        return y

    def drag_to(self, share: float, y: float) -> None:
        box = self.slider.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + box["width"] * share, y, steps=6)

    def question(self) -> Locator:
        return self.page.locator(".pv-ask")
