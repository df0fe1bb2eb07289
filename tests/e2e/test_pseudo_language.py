"""The course in a made-up language whose texts are 40 % longer: it is what the browser shows, and it fits."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from course.growth.lesson import LESSON as GROWTH
from course.lesson import CoursePage, Lesson
from course.pages import COURSE
from course.waste_between.lesson import LESSON as WASTE_BETWEEN
from engine.i18n import LANGUAGE_VARIABLE
from tests.e2e import test_in_view as lessons_in_view
from tests.e2e import test_live_in_view as live_in_view
from tests.helpers.app_server import ROOT, running_app
from tests.helpers.course_reader import DESKTOP, CourseReader
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.lesson_page import LessonPage
from tests.helpers.lessons import LESSONS, LessonCase
from tests.helpers.live_page import LivePage
from tests.helpers.pseudo_language import pseudo, pseudo_catalogue
from tests.helpers.room_page import RoomPage
from tests.helpers.waiting import until_equal

PHONE = {"width": 375, "height": 812}
SIZES = ((1280, 800), (1024, 768), (375, 812))
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
    environment = {"PAGED_KV_MODEL": "tiny-random", LANGUAGE_VARIABLE: str(pseudo_catalogue(folder))}
    with running_app(ROOT / "app.py", folder / "server.log", environment) as server:
        context = browser.new_context(reduced_motion="reduce", viewport=DESKTOP)
        yield CourseReader(context.new_page(), server.url)
        context.close()


@pytest.fixture
def reader(tab: CourseReader) -> Iterator[CourseReader]:
    tab.resize(**DESKTOP)
    yield tab
    tab.check()


@pytest.mark.slow
def test_a_lesson_its_map_and_the_navigation_are_translated(reader: CourseReader) -> None:
    reader.arrive(str(GROWTH.url_path))
    expect(reader.heading).to_have_text(pseudo(GROWTH.title))
    link = reader.page.get_by_test_id("stSidebarNav").get_by_role("link", name=pseudo(WASTE_BETWEEN.short_name))
    expect(link).to_be_visible()
    the_map = reader.the_map("map_growth")
    for name in ("First frame (Home)", "Play (space)", "Step forward (right arrow)", "Larger picture"):
        expect(the_map.get_by_role("button", name=pseudo(name), exact=True)).to_be_visible()
    expect(the_map.locator(".bar .word")).to_have_text(pseudo("Play"))
    expect(the_map.locator(".bar .label")).to_have_text(pseudo("{n} tokens").format(n=11))
    expect(the_map.locator(".legend li").first).to_have_text(pseudo("in use"))
    expect(the_map.locator(".data-tables summary")).to_have_text(pseudo("The same as text and tables"))
    expect(the_map.locator(".figures dt").first).to_have_text(pseudo("Tokens stored"))
    reader.page.get_by_role("combobox", name=pseudo("Words")).click()
    reader.page.get_by_role("option", name=pseudo("a 14-word reply")).click()
    reader.page.wait_for_url(lambda url: "words=a+14-word+reply" in url)  # values in the address stay English


@pytest.mark.parametrize("page", COURSE, ids=lambda page: page.title)
@pytest.mark.slow
def test_longer_texts_fit_on_a_desktop_and_on_a_phone(reader: CourseReader, page: CoursePage) -> None:
    reader.arrive(page.url_path or "")
    expect(reader.page.get_by_text("⟦").first).to_be_visible()
    for size in (DESKTOP, PHONE):
        reader.resize(**size)
        reader.settle()
        reader.expect_to_fit(size["width"])
        until_equal(lambda: reader.maps.evaluate_all(STICKS_OUT), [])


@pytest.mark.parametrize(
    ("size", "case"),
    [pytest.param(size, case, id=f"{case.name}-{size[0]}") for size in SIZES for case in LESSONS],
)
@pytest.mark.every_case
@pytest.mark.slow
def test_longer_texts_keep_the_picture_and_its_slider_in_view(
    reader: CourseReader, size: tuple[int, int], case: LessonCase
) -> None:
    reader.resize(*size)
    LessonPage(reader.page, reader.base_url, case).open()
    until_equal(lambda: lessons_in_view.complaints(reader.page, list(case.pictures())), [])


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("lesson", "query", "maps"), lessons_in_view.EXPERIMENTS)
@pytest.mark.every_case
@pytest.mark.slow
def test_longer_texts_leave_the_maps_of_an_experiment_in_view(
    reader: CourseReader, size: tuple[int, int], lesson: Lesson, query: dict[str, object], maps: list[str]
) -> None:
    reader.resize(*size)
    experiment = ExperimentPage(reader.page, reader.base_url, lesson)
    reader.page.goto(f"{experiment.address}?{urlencode(query)}")
    expect(reader.heading).to_have_text(pseudo(lesson.title))
    experiment.settle()
    until_equal(lambda: lessons_in_view.complaints(reader.page, maps), [])


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.every_case
@pytest.mark.slow
def test_longer_texts_leave_the_rooms_map_in_view(reader: CourseReader, size: tuple[int, int]) -> None:
    reader.resize(*size)
    reader.arrive("room")
    reader.page.get_by_role("button", name=pseudo("Start a room"), exact=True).click()
    RoomPage(reader.page, reader.base_url).expect_engine()
    reader.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")  # the button to start was further down
    until_equal(lambda: live_in_view.complaints(reader.page, "room_map", []), [])
    reader.page.get_by_text(pseudo("Reset the engine, end the room")).click()
    reader.page.get_by_role("button", name=pseudo("End the room"), exact=True).click()
    expect(reader.page.get_by_role("button", name=pseudo("Start a room"), exact=True)).to_be_visible()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.every_case
@pytest.mark.slow
def test_longer_texts_keep_the_live_map_and_its_buttons_in_view(reader: CourseReader, size: tuple[int, int]) -> None:
    reader.resize(*size)
    live = LivePage(reader.page, reader.base_url).open(prompt="The capital of France is", stop_at_end="false")
    live.add()
    live.step(3)
    controls = [live.button("add"), live.button("step")]
    until_equal(lambda: live_in_view.complaints(reader.page, "memory_map", controls), [])
