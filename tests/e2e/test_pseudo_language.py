"""The course in a made-up language whose texts are 40 % longer: it is what the browser shows, and it fits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.app_server import ROOT, running_app
from tests.helpers.course_reader import DESKTOP, CourseReader
from tests.helpers.pseudo_language import pseudo
from tests.helpers.waiting import until_equal
from views.course import GROWTH, HOME, LESSONS, SUMMARY, WASTE_BETWEEN, CoursePage
from views.words import LANGUAGE_VARIABLE
from views.words.catalogue import catalogue_text
from views.words.gather import gather

PHONE = {"width": 375, "height": 812}
STICKS_OUT = """maps => maps.flatMap(map => {
    const svg = map.querySelector('svg.picture'), room = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width && (box.right > room.right + 2 || box.left < room.left - 2);
    }).map(text => text.textContent);
})"""
"""Texts that a picture has no room for."""


@pytest.fixture(scope="module")
def tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CourseReader]:
    folder = tmp_path_factory.mktemp("pseudo_language")
    words = folder / "xx.json"
    words.write_text(catalogue_text({english: pseudo(english) for english in gather()}), "utf-8")
    environment = {"PAGED_KV_MODEL": "tiny-random", LANGUAGE_VARIABLE: str(words)}
    with running_app(ROOT / "app.py", folder / "server.log", environment) as server:
        context = browser.new_context(reduced_motion="reduce", viewport=DESKTOP)
        yield CourseReader(context.new_page(), server.url)
        context.close()


@pytest.fixture
def reader(tab: CourseReader) -> Iterator[CourseReader]:
    tab.resize(**DESKTOP)
    yield tab
    tab.check()


def test_a_lesson_its_map_and_the_navigation_speak_it(reader: CourseReader) -> None:
    reader.arrive(str(GROWTH.url_path))
    expect(reader.heading).to_have_text(pseudo(GROWTH.title))
    link = reader.page.get_by_test_id("stSidebarNav").get_by_role("link", name=pseudo(WASTE_BETWEEN.title))
    expect(link).to_be_visible()
    the_map = reader.the_map("map_growth")
    for name in ("First frame (Home)", "Play (space)", "Step forward (right arrow)", "Larger picture"):
        expect(the_map.get_by_role("button", name=pseudo(name), exact=True)).to_be_visible()
    expect(the_map.locator(".bar .word")).to_have_text(pseudo("Play"))
    expect(the_map.locator(".bar .label")).to_have_text(f"11 {pseudo('tokens')}")
    expect(the_map.locator(".legend li").first).to_have_text(pseudo("in use"))
    expect(the_map.locator(".twin summary")).to_have_text(pseudo("The same as text and tables"))
    expect(the_map.locator(".figures dt").first).to_have_text(pseudo("Tokens known"))
    reader.page.get_by_role("combobox", name=pseudo("Words")).click()
    reader.page.get_by_role("option", name=pseudo("the guide's reply")).click()
    reader.page.wait_for_url(lambda url: "words=the+guide%27s+reply" in url)  # values in the address stay English


@pytest.mark.parametrize("page", (HOME, *LESSONS, SUMMARY), ids=lambda page: page.title)
def test_longer_texts_fit_on_a_desktop_and_on_a_phone(reader: CourseReader, page: CoursePage) -> None:
    reader.arrive(page.url_path or "")
    expect(reader.page.get_by_text("⟦").first).to_be_visible()
    for size in (DESKTOP, PHONE):
        reader.resize(**size)
        reader.settle()
        reader.expect_to_fit(size["width"])
        until_equal(lambda: reader.maps.evaluate_all(STICKS_OUT), [])
