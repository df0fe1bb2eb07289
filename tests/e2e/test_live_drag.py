"""The live page's two sliders: dragged to the right they drive the engine, dragged back they scrub its trace."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.app_server import AppServer
from tests.helpers.live_page import STEP_MILLISECONDS, LivePage
from tests.helpers.waiting import until_equal

SETTINGS = {"prompt": "abcdef", "max_tokens": 12, "num_blocks": 64, "stop_at_end": "false"}


@pytest.fixture
def live(page: Page, app_server: AppServer) -> LivePage:
    return LivePage(page, app_server.url).open(**SETTINGS)


def drag(live: LivePage, name: str, start: float, end: float) -> None:
    """Hold the thumb at `start` and move it to `end`, shares of the slider's range. The button stays down."""
    box = live.page.locator(f".st-key-drag input.{name}").bounding_box()
    assert box is not None
    thumb = box["height"] * 2 / 3
    places = [box["x"] + thumb / 2 + (box["width"] - thumb) * share for share in (start, end)]
    live.page.mouse.move(places[0], box["y"] + box["height"] / 2)
    live.page.mouse.down()
    live.page.mouse.move(places[1], box["y"] + box["height"] / 2, steps=5)


def value(live: LivePage, name: str) -> str:
    return live.page.locator(f".st-key-drag input.{name}").input_value()


def shown_step(live: LivePage) -> str:
    return live.page.locator(".st-key-memory_map .label").inner_text()


def test_dragging_right_adds_requests_and_dragging_left_scrubs(live: LivePage) -> None:
    drag(live, "requests", 0, 3 / 8)
    expect(live.requests).to_have_count(3, timeout=STEP_MILLISECONDS)
    live.expect_figure("step", "3")  # one step a request: each is seen to start
    live.page.mouse.up()
    live.settle()
    until_equal(lambda: (value(live, "requests"), value(live, "tokens")), ("3", "3"))

    drag(live, "requests", 3 / 8, 1 / 8)
    until_equal(lambda: shown_step(live), "Step 1")
    live.page.mouse.up()
    live.settle()
    expect(live.requests).to_have_count(3)
    live.expect_figure("step", "3")
    until_equal(lambda: (value(live, "requests"), value(live, "tokens")), ("1", "1"))


@pytest.mark.slow
def test_dragging_right_computes_tokens_and_dragging_left_scrubs(live: LivePage) -> None:
    drag(live, "tokens", 0, 6 / 12)
    live.expect_figure("step", "6")
    live.page.mouse.up()
    live.settle()
    filled = ["4 of 4", "4 of 4", "3 of 4"]
    live.expect_table("A", [[str(i), str(i), f"{4 * i} to {4 * i + 3}", n, "1"] for i, n in enumerate(filled)])

    drag(live, "tokens", 6 / 12, 2 / 12)
    until_equal(lambda: shown_step(live), "Step 2")
    live.page.mouse.up()
    live.settle()
    live.expect_figure("step", "6")


@pytest.mark.slow
def test_each_key_press_is_one_step_and_the_last_one_is_not_lost(live: LivePage) -> None:
    live.page.locator(".st-key-drag input.tokens").focus()
    for _ in range(5):
        live.page.keyboard.press("ArrowRight")
    live.expect_figure("step", "5")
    live.settle()
    until_equal(lambda: value(live, "tokens"), "5")


@pytest.mark.slow
def test_a_refused_prompt_is_explained_and_the_slider_resets(page: Page, app_server: AppServer) -> None:
    live = LivePage(page, app_server.url).open(prompt="abcdefghij", num_blocks=2, block_size=4)
    live.page.locator(".st-key-drag input.requests").press("ArrowRight")
    expect(page.get_by_role("alert").first).to_be_visible()
    live.expect_figure("step", "0")
