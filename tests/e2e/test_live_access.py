"""The live page in use: readable by everybody, in both themes, on a phone and on a projector, by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from tests.helpers.page_watch import PageWatch
from tests.helpers.waiting import until
from views.live_tools import TABLES, TOOLS


@pytest.fixture(params=["light", "dark"])
def themed_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param, reduced_motion="reduce")
    page = context.new_page()
    watch = PageWatch(page)
    yield page
    watch.check()
    context.close()


def test_axe_finds_nothing_while_requests_run_wait_and_are_refused(themed_page: Page, app_server: AppServer) -> None:
    live = LivePage(themed_page, app_server.url).open(prompt="abcdefgh", samples=2, num_blocks=18, block_size="1e9")
    live.setting("Block size").fill("4")
    themed_page.keyboard.press("Tab")
    live.settle()
    live.add()
    live.add()
    live.step(4)
    live.setting("Samples").fill("8")
    themed_page.keyboard.press("Tab")
    live.button("add").click()
    expect(themed_page.get_by_role("alert").first).to_be_visible()
    themed_page.get_by_text("More settings").click()
    live.settle()
    expect_no_violations(themed_page)


HOSTILE = "<img src=x onerror=alert(1)> **b** :red[x] $5\t  السلام عليكم 👩‍👩‍👧 日本"


def test_every_tool_is_readable_by_everybody_and_shows_any_text_as_it_is(
    themed_page: Page, app_server: AppServer
) -> None:
    live = LivePage(themed_page, app_server.url).open(samples=2, num_blocks=100, temperature=1.2, seed=3)
    live.setting("Prompt").fill(HOSTILE)
    live.add()
    live.step(2)
    live.expect_prompt("A", HOSTILE)
    for tool in TOOLS:
        live.tool(tool)
        if tool == "Time travel":
            live.button("branch").click()
            live.expect_figure("branch.at_step", "2")
            live.settle()
        themed_page.mouse.move(0, 0)
        themed_page.wait_for_timeout(300)
        expect_no_violations(themed_page)
        expect(themed_page.locator("img[src='x'], [data-testid=stMain] script")).to_have_count(0)


def test_a_prompt_is_added_and_stepped_by_keyboard_alone(page: Page, app_server: AppServer) -> None:
    live = LivePage(page, app_server.url).open()
    live.setting("Prompt").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("typed")
    for _ in range(12):
        page.keyboard.press("Tab")
        live.settle()
        if page.evaluate("document.activeElement.textContent") == "Add request":
            break
    page.keyboard.press("Enter")
    expect(live.requests).to_have_count(1)
    live.settle()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    live.expect_figure("step", "1")
    live.expect_prompt("A", "typed")


@pytest.mark.parametrize(("width", "height"), [(375, 812), (1024, 768)])
def test_nothing_sticks_out_while_it_is_in_use(page: Page, app_server: AppServer, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    live = LivePage(page, app_server.url).open(prompt="a rather long prompt without end" * 3, samples=3, num_blocks=200)
    live.add()
    live.step(2)
    for tool in (TABLES, *TOOLS):
        live.tool(tool)
        main = "document.querySelector('[data-testid=stMain]').scrollWidth"
        until(lambda main=main: page.evaluate(main) <= width, what=f"{tool} within {width} pixels")
