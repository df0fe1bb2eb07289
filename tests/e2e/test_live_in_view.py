"""Map and main control of the live page and the room are in view together, without scrolling, on three screens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from tests.helpers.room_page import RoomPage
from tests.helpers.waiting import until, until_equal

SIZES = {"laptop": (1280, 800), "projector": (1024, 768), "phone": (375, 812)}
BESIDE = 1024
"""From this width on the controls stand beside the map."""
PLACES = """mm => {
    const box = e => e.getBoundingClientRect();
    const picture = box(mm.querySelector("svg.picture"));
    return {
        top: box(mm.querySelector(".above")).top, bottom: box(mm.querySelector(".below")).bottom, width: picture.width,
        overlap: picture.bottom - box(mm.querySelector(".below")).top,
    };
}"""


@pytest.fixture(params=list(SIZES.values()), ids=list(SIZES))
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def complaints(tab: Page, key: str, controls: list[Locator]) -> list[str]:
    """What is wrong with the places of a map and of its main controls."""
    width, height = tab.evaluate("[window.innerWidth, window.innerHeight]")
    at: dict[str, Any] = tab.locator(f".st-key-{key} .mm").evaluate(PLACES)
    found = []
    if at["top"] < 0 or at["bottom"] > height:
        found.append(f"the map goes from {at['top']:.0f} to {at['bottom']:.0f} of {height}")
    if at["width"] < width * (0.5 if width >= BESIDE else 0.9):
        found.append(f"the map is {at['width']:.0f} wide")
    if at["overlap"] > 1:
        found.append(f"the picture covers {at['overlap']:.0f} pixels of what is below it")
    boxes = [control.bounding_box() for control in controls]
    found += [f"a control is at {box}" for box in boxes if box is None or not 0 <= box["y"] <= height - box["height"]]
    if scrolled(tab):
        found.append("the page has scrolled")
    return found


def scrolled(tab: Page) -> float:
    return float(tab.locator("[data-testid=stMain]").evaluate("main => main.scrollTop"))


def test_the_map_and_the_buttons_are_in_view_from_the_opening_to_the_tenth_step(
    tab: Page, app_server: AppServer
) -> None:
    live = LivePage(tab, app_server.url).open(prompt="The capital of France is", stop_at_end="false")
    controls = [live.button("add"), live.button("step")]
    until_equal(lambda: complaints(tab, "memory_map", controls), [])
    for _ in range(6):
        live.add()
    live.step(10)
    until_equal(lambda: complaints(tab, "memory_map", controls), [])


@pytest.mark.slow
def test_the_map_stays_while_texts_scroll(tab: Page, app_server: AppServer) -> None:
    live = LivePage(tab, app_server.url).open(prompt="abc")
    if tab.evaluate("window.innerWidth") < BESIDE:
        pytest.skip("one column: the map scrolls with the page")
    for _ in range(6):
        live.add()
    head = tab.locator(".st-key-memory_map .above")
    before = head.bounding_box()
    tab.locator("[data-testid=stMain]").evaluate("main => main.scrollBy(0, 60)")
    until(lambda: scrolled(tab) > 0, what="a page that has scrolled")
    assert head.bounding_box() == before


@pytest.mark.slow
def test_the_rooms_map_is_in_view_with_the_presenters_step(tab: Page, app_server: AppServer, browser: Browser) -> None:
    room = RoomPage(tab, app_server.url)
    code = room.start()
    tab.locator("[data-testid=stMain]").evaluate("main => main.scrollTo(0, 0)")  # the button to start was further down
    until_equal(lambda: complaints(tab, "room_map", []), [])
    if tab.evaluate("window.innerWidth") < BESIDE:
        return  # a presenter's prompt form is below the map there, and sending scrolls to it
    other = browser.new_context(reduced_motion="reduce")
    RoomPage(other.new_page(), app_server.url).join(code)
    until_equal(lambda: tab.locator("details.pv-invite").get_attribute("open"), None)
    room.send("The capital of France is")
    room.button("Step").click()
    room.expect_figure("step", "1")
    room.settle()
    until_equal(lambda: complaints(tab, "room_map", [room.button("Step")]), [])
    other.close()
