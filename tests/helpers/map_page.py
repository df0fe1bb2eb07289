"""A page of memory maps in the browser, and what stands in them."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.helpers.app_server import ROOT, AppServer
from tests.helpers.waiting import until, until_at_rest

MAPS_APP = ROOT / "tests" / "e2e" / "apps" / "memory_map_app.py"


def open_map(page: Page, maps: AppServer, query: str = "scene=fox") -> Locator:
    """The page, its map painted and the script at rest."""
    page.goto(f"{maps.url}/?{query}")
    the_map = page.locator(".st-key-map")
    expect(the_map.locator("svg .heading").first).to_be_visible()
    until_at_rest(page)
    return the_map


def label(the_map: Locator) -> Locator:
    return the_map.locator(".bar .label")


def figures_beside(the_map: Locator) -> dict[str, str]:
    """The figures beside a map, by key, as they stand in one moment."""
    cells = the_map.locator("dl.figures dd:visible")
    return dict(cells.evaluate_all("cells => cells.map(cell => [cell.dataset.figure, cell.innerText])"))


def table_rows(the_map: Locator, caption: str) -> list[list[str]]:
    """The cells of one of the map's own text tables, as they stand in one moment."""
    table = the_map.locator("table", has=the_map.page.locator("caption", has_text=caption))
    expect(table).to_be_visible()
    return cells_of(table.locator("tbody tr"), "td")


def cells_of(rows: Locator, kind: str = "th, td") -> list[list[str]]:
    """The text of each cell of each row, read in one moment: a table that is drawn anew is never half old."""
    cells: list[list[str]] = rows.evaluate_all(
        "(rows, kind) => rows.map(row => [...row.querySelectorAll(kind)].map(cell => cell.textContent))", kind
    )
    return cells


def picture(the_map: Locator) -> bytes:
    """The picture in pixels, nothing pointed at, once it no longer changes."""
    the_map.page.mouse.move(0, 0)
    svg, seen = the_map.locator("svg.picture"), [b""]

    def stands_still() -> bool:
        seen.append(svg.screenshot(animations="disabled", caret="hide"))
        return seen[-1] == seen[-2]

    until(stands_still, what="a picture that stands still")
    return seen[-1]


def same_picture(one: bytes, other: bytes) -> bool:
    """Equal up to the last shade of an edge: Chromium smooths a line that it draws anew a little differently."""
    first, second = (np.asarray(Image.open(BytesIO(png)).convert("RGB"), dtype=np.int16) for png in (one, other))
    return first.shape == second.shape and bool(np.abs(first - second).max() <= 16)


def grab_left_end(slider: Locator) -> float:
    """Press the mouse on a slider's left end, once it stands still; returns the height to drag at."""
    slider.hover(position={"x": 3, "y": 4})
    box = slider.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    slider.page.mouse.move(box["x"] + 3, y)
    slider.page.mouse.down()
    return y


def lit(the_map: Locator, what: str) -> Locator:
    return the_map.locator(f"svg {what}.lit")


def go_to(the_map: Locator, frame: int) -> None:
    """Put the slider at a frame, as a drag that ends there, and leave the focus on it."""
    the_map.locator("input.range").fill(str(frame))
    expect(label(the_map)).to_have_text(f"Step {frame}" if frame else "Start")
    the_map.locator("input.range").focus()
