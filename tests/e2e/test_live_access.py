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
from views.live.tools import TABLES, TOOLS


@pytest.fixture(params=["light", "dark"])
def themed_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param, reduced_motion="reduce")
    page = context.new_page()
    watch = PageWatch(page)
    yield page
    watch.check()
    context.close()


@pytest.mark.slow
def test_no_accessibility_violation_while_requests_run_wait_and_are_refused(
    themed_page: Page, app_server: AppServer
) -> None:
    live = LivePage(themed_page, app_server.url).open(prompt="abcdefgh", samples=2, num_blocks=18, block_size="1e9")
    live.set("Block size", 4)
    live.add()
    live.add()
    live.step(4)
    live.set("Samples", 8)
    live.button("add").click()
    expect(themed_page.get_by_role("alert").first).to_be_visible()
    expect_no_violations(themed_page)


HOSTILE = "<img src=x onerror=alert(1)> **b** :red[x] $5\t  السلام عليكم 👩‍👩‍👧 日本"


@pytest.mark.slow
def test_every_tool_is_accessible_and_shows_any_text_verbatim(themed_page: Page, app_server: AppServer) -> None:
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


READ_IN_ORDER = (
    'heading "Live engine"', 'textbox "Prompt"', 'button "Add request"', 'button "Step"', "term: Blocks used",
    "Request A", "Prompt: abcdef Reply:", "status: A took 2 blocks for 6 tokens.",
    'button "block 0: logical block 0 of A, ref_cnt 1, slots written: 4 of 4: a b c d"',
    'button "block 2: free, the next to be allocated"', 'radiogroup "Look closer"', 'region "Block table of A"',
    'table "A: 7 tokens known, 6 written."',
)  # fmt: skip


def test_read_aloud_the_page_says_what_a_step_did(page: Page, app_server: AppServer) -> None:
    live = LivePage(page, app_server.url).open(prompt="abcdef")
    live.add()
    live.step(1)
    expect(page.locator(".st-key-memory_map .say")).to_have_text("A took 2 blocks for 6 tokens.")
    read = page.get_by_test_id("stMain").aria_snapshot()
    places = [read.find(words) for words in READ_IN_ORDER]
    assert -1 not in places, READ_IN_ORDER[places.index(-1)]
    assert places == sorted(places)
    assert read.count("status:") == 1, "one voice: the sentence of the step"


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
@pytest.mark.slow
def test_nothing_overflows_in_use(page: Page, app_server: AppServer, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    live = LivePage(page, app_server.url).open(prompt="a rather long prompt without end" * 3, samples=3, num_blocks=200)
    live.add()
    live.step(2)
    for tool in (TABLES, *TOOLS):
        live.tool(tool)
        main = "document.querySelector('[data-testid=stMain]').scrollWidth"
        until(lambda main=main: page.evaluate(main) <= width, what=f"{tool} within {width} pixels")
