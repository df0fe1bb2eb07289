"""What a reader has done is kept in their browser: ticks in the navigation, a list on the last page, on paper too."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from course.growth.lesson import LESSON as GROWTH
from course.pages import LESSONS, SUMMARY
from tests.helpers.app_server import AppServer
from tests.helpers.navigation import navigation_link
from tests.helpers.waiting import until_at_rest, until_equal

TICK = "link => getComputedStyle(link.closest('li'), '::after').content"


def ticked(page: Page) -> list[str]:
    return [lesson.key for lesson in LESSONS if "✓" in navigation_link(page, lesson).evaluate(TICK)]


def milestones(page: Page) -> list[str]:
    return page.locator(".pv-milestone:visible").all_inner_texts()


def test_progress_is_ticked_listed_printed_and_cleared(page: Page, app_server: AppServer) -> None:
    page.goto(f"{app_server.url}/{GROWTH.url_path}?tokens=3")
    expect(page.get_by_text("Lesson 4 of 7", exact=True)).to_be_visible()
    until_at_rest(page)
    assert ticked(page) == []
    page.locator(".mm .range").first.press("End")
    until_equal(lambda: ticked(page), [GROWTH.key])
    page.locator(f".st-key-question_{GROWTH.key} summary").click()
    page.get_by_role("radio").first.check(force=True)
    expect(page.locator(".pv-verdict")).not_to_be_empty()
    expect(page.locator("html")).to_have_attribute("data-answered", GROWTH.key)  # it is in the browser's memory
    page.goto(f"{app_server.url}/{SUMMARY.url_path}")
    done = ["not tried yet"] * 3 + ["question answered", "picture seen to the end"] + ["not tried yet"] * 3
    until_equal(lambda: milestones(page), done)
    until_at_rest(page)

    page.emulate_media(media="print")
    for lesson in LESSONS:
        expect(page.get_by_text(lesson.explains)).to_be_visible()
    for hidden in ("[data-testid=stSidebar]", ".st-key-summary_more", ".st-key-summary_actions"):
        expect(page.locator(hidden)).to_be_hidden()
    page.emulate_media(media="screen")

    page.get_by_role("button", name="Forget what I did").click()
    until_equal(lambda: milestones(page), ["not tried yet"] * 7)
    assert ticked(page) == []
