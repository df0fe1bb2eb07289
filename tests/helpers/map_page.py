"""A page of memory maps in the browser, and what stands in them."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.helpers.app_server import ROOT, AppServer

MAPS_APP = ROOT / "tests" / "e2e" / "apps" / "memory_map_app.py"


def open_map(page: Page, maps: AppServer, query: str = "scene=fox") -> Locator:
    """The page, its map painted and the script at rest."""
    page.goto(f"{maps.url}/?{query}")
    the_map = page.locator(".st-key-map")
    expect(the_map.locator("svg .heading").first).to_be_visible(timeout=20_000)
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_visible()
    return the_map


def label(the_map: Locator) -> Locator:
    return the_map.locator(".bar .label")


def table_rows(the_map: Locator, caption: str) -> list[list[str]]:
    """The cells of one of the map's own text tables."""
    table = the_map.locator("table", has=the_map.page.locator("caption", has_text=caption))
    expect(table).to_be_visible()
    return [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]


def picture(the_map: Locator) -> bytes:
    """The picture in pixels, nothing pointed at."""
    the_map.page.mouse.move(0, 0)
    return the_map.locator("svg.picture").screenshot(animations="disabled", caret="hide")


def lit(the_map: Locator, what: str) -> Locator:
    return the_map.locator(f"svg {what}.lit")


def go_to(the_map: Locator, frame: int) -> None:
    """Put the slider at a frame, as a drag that ends there, and leave the focus on it."""
    the_map.locator("input.range").fill(str(frame))
    expect(label(the_map)).to_have_text(f"Step {frame}" if frame else "Start")
    the_map.locator("input.range").focus()
