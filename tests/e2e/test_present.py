"""Presenting: picture, slider and one sentence fill the screen, and arrow keys walk through frames and pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from course.block_table.lesson import LESSON as BLOCK_TABLE
from course.growth.lesson import LESSON as GROWTH
from course.pages import HOME, LESSONS, LIVE_ENGINE
from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import AppServer
from tests.helpers.in_view import SIZES, complaints
from tests.helpers.lessons import LESSONS as CASES
from tests.helpers.live_page import LivePage
from tests.helpers.room_page import PATIENCE, RoomPage
from tests.helpers.waiting import until_at_rest, until_equal
from views.navigation import navigation_name

SIDEBAR, PICTURE = "[data-testid=stSidebar]", ".st-key-lesson_picture"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(reduced_motion="reduce")
    yield context.new_page()
    context.close()


def both_sizes(tab: Page) -> Iterator[str]:
    """The tab in the size of each screen that is presented on."""
    for name in ("laptop", "projector"):
        width, height = SIZES[name]
        tab.set_viewport_size({"width": width, "height": height})
        yield name


def title_of(tab: Page) -> Locator:
    return tab.locator(".st-key-present .title")


def open_at(tab: Page, app_server: AppServer, path: str) -> None:
    """A page, not presented yet."""
    tab.goto(f"{app_server.url}/{path}")
    tab.evaluate("sessionStorage.clear()")
    tab.reload()
    expect(tab.get_by_role("button", name="Present (P)")).to_be_visible()
    until_at_rest(tab)


def test_arrow_keys_step_through_frames_and_then_pages(tab: Page, app_server: AppServer) -> None:
    open_at(tab, app_server, f"{GROWTH.url_path}?tokens=22")
    label = tab.locator(".bar .label")
    tab.keyboard.press("p")
    expect(tab.locator(SIDEBAR)).to_be_hidden()
    expect(title_of(tab)).to_have_text(navigation_name(GROWTH))
    slider = tab.locator(".mm .range").first
    last = int(slider.get_attribute("max") or 0)
    while int(slider.input_value()) < last:
        tab.keyboard.press("ArrowRight")
    shown = label.inner_text()
    tab.wait_for_url(lambda url: f"tokens={shown.split()[0]}" in url)
    tab.keyboard.press("ArrowRight")
    expect(title_of(tab)).to_have_text(navigation_name(BLOCK_TABLE))
    expect(tab.locator(SIDEBAR)).to_be_hidden()
    until_at_rest(tab)
    tab.locator(".mm .range").first.press("Home")
    until_at_rest(tab)
    tab.keyboard.press("ArrowLeft")
    expect(title_of(tab)).to_have_text(navigation_name(GROWTH))
    expect(label).to_have_text(shown)
    tab.keyboard.press("Escape")
    expect(tab.locator(SIDEBAR)).to_be_visible()
    expect(tab.get_by_role("heading", name=GROWTH.title)).to_be_visible()


def test_typing_into_a_text_box_triggers_no_shortcut(tab: Page, app_server: AppServer) -> None:
    open_at(tab, app_server, LIVE_ENGINE.url_path or "")
    prompt = tab.get_by_label("Prompt", exact=True)
    prompt.fill("")
    prompt.press("p")
    expect(prompt).to_have_value("p")
    expect(tab.locator(SIDEBAR)).to_be_visible()


@pytest.mark.slow
def test_every_lesson_fills_the_screen_and_buttons_turn_the_pages(tab: Page, app_server: AppServer) -> None:
    open_at(tab, app_server, "")
    tab.get_by_role("button", name="Present (P)").click()
    expect(tab.get_by_role("button", name="End presenting (Esc)")).to_be_focused()
    expect(title_of(tab)).to_have_text(navigation_name(HOME))
    for _size in both_sizes(tab):
        for lane in tab.locator(".pv-race-animation img:visible").all():
            expect(lane).to_be_in_viewport(ratio=1)
    maps = {case.page: list(case.pictures()) for case in CASES}
    for lesson in LESSONS:
        tab.get_by_role("button", name=f"Next: {navigation_name(lesson)}").click()
        expect(title_of(tab)).to_have_text(navigation_name(lesson))
        until_at_rest(tab)
        expect(tab.locator(PICTURE)).to_be_visible()
        for _size in both_sizes(tab):
            until_equal(lambda lesson=lesson: complaints(tab, maps[lesson]), [])
        expect(tab.locator(".st-key-lesson_controls")).to_be_hidden()
    expect_no_violations(tab)
    tab.get_by_role("button", name="End presenting (Esc)").click()
    expect(tab.get_by_role("button", name="Present (P)")).to_be_focused()
    expect(tab.locator(SIDEBAR)).to_be_visible()


def test_the_live_engine_steps_while_it_is_presented(tab: Page, app_server: AppServer) -> None:
    open_at(tab, app_server, f"{LIVE_ENGINE.url_path}?prompt=The+capital+of+France+is")
    live = LivePage(tab, app_server.url)
    live.add()
    tab.keyboard.press("p")
    live.button("step").click()
    expect(tab.locator(".bar .label")).to_have_text("Step 1")
    for _size in both_sizes(tab):
        until_equal(lambda: complaints(tab, ["memory_map"]), [])
        for control in (live.button("step"), tab.locator(".st-key-drag input.tokens")):
            expect(control).to_be_in_viewport(ratio=1)
    tab.keyboard.press("ArrowRight")
    expect(title_of(tab)).to_have_text(navigation_name(LIVE_ENGINE))


@pytest.mark.slow
def test_the_code_moves_into_the_bar_after_the_first_join(tab: Page, app_server: AppServer, browser: Browser) -> None:
    open_at(tab, app_server, "room")
    code = RoomPage(tab, app_server.url).start()
    tab.keyboard.press("p")
    large, small = tab.locator(".pv-invitation img"), tab.locator(".st-key-room_bar .qr img")
    for _size in both_sizes(tab):
        expect(large).to_be_in_viewport(ratio=1)
    expect(small).to_be_hidden()
    other = browser.new_context(reduced_motion="reduce")
    RoomPage(other.new_page(), app_server.url).join(code)
    expect(large).to_be_hidden(timeout=PATIENCE)
    expect(small).to_be_in_viewport(ratio=1, timeout=PATIENCE)
    for _size in both_sizes(tab):
        until_equal(lambda: complaints(tab, ["room_map"]), [])
        expect(tab.get_by_role("button", name="Step", exact=True)).to_be_in_viewport(ratio=1)
    other.close()
