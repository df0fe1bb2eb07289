"""The picture of every lesson and experiment and its slider are in view together, without scrolling, on screens of
three sizes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from course.equation.lesson import LESSON as EQUATION
from course.lesson import Lesson
from course.preemption.lesson import LESSON as PREEMPTION
from course.race.lesson import LESSON as RACE
from course.sabotage.lesson import LESSON as SABOTAGE
from course.shuffle.lesson import LESSON as SHUFFLE
from course.why_not_shared.lesson import LESSON as WHY_NOT_SHARED
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.in_view import BESIDE, SIZES, complaints, places, scrolled, width_of
from tests.helpers.lesson_page import LessonPage
from tests.helpers.lessons import LESSONS, LessonCase
from tests.helpers.waiting import until, until_equal

DESKTOP = 1280
MOST_PAGE = 2_400
EXPERIMENTS = [
    pytest.param(RACE, {}, ["map_race", "map_paged"], id="race"),
    pytest.param(
        PREEMPTION,
        {"prompts": "The red fox\nA blue whale", "max_tokens": 10, "num_blocks": 10},
        ["map_preemption", "map_swap"],
        id="preemption",
    ),
    pytest.param(
        SHUFFLE, {"prompt": "A small robot", "move": "memory_only", "after": 3}, ["map_shuffle"], id="shuffle"
    ),
    pytest.param(SABOTAGE, {"prompt": "The capital of France"}, ["map_sabotage"], id="sabotage"),
    pytest.param(EQUATION, {"prompts": "The capital\nA robot"}, ["map_equation", "map_paged"], id="equation"),
]
"""An experiment, its address, and its maps; the first has the slider."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SIZES["laptop"], id="laptop"),
        pytest.param(SIZES["projector"], id="projector", marks=pytest.mark.slow),
        pytest.param(SIZES["phone"], id="phone", marks=pytest.mark.slow),
    ],
)
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)
@pytest.mark.every_case
def test_the_whole_picture_and_its_slider_are_in_view(tab: Page, app_server: AppServer, case: LessonCase) -> None:
    lesson = LessonPage(tab, app_server.url, case).open()
    until_equal(lambda: complaints(tab, list(case.pictures())), [])
    lesson.slider.press("End")
    until_equal(lambda: complaints(tab, list(case.pictures())), [])
    assert scrolled(tab) == 0
    if width_of(tab) >= DESKTOP:
        assert tab.locator("[data-testid=stMain]").evaluate("main => main.scrollHeight") <= MOST_PAGE


@pytest.mark.parametrize(("lesson", "query", "maps"), EXPERIMENTS)
def test_the_maps_of_an_experiment_are_in_view(
    tab: Page, app_server: AppServer, lesson: Lesson, query: dict[str, object], maps: list[str]
) -> None:
    experiment = ExperimentPage(tab, app_server.url, lesson).open(**query)
    for key in maps:
        expect(experiment.map(key).locator("svg.picture")).to_be_visible()
    until_equal(lambda: complaints(tab, maps), [])
    experiment.map(maps[0]).locator("input.range").press("End")
    until_equal(lambda: complaints(tab, maps), [])
    assert scrolled(tab) == 0
    if width_of(tab) >= DESKTOP:
        assert tab.locator("[data-testid=stMain]").evaluate("main => main.scrollHeight") <= MOST_PAGE


@pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)
@pytest.mark.slow
def test_the_picture_stays_while_the_rest_scrolls(tab: Page, app_server: AppServer, case: LessonCase) -> None:
    if width_of(tab) < BESIDE:
        pytest.skip("one column: the picture scrolls with the page")
    LessonPage(tab, app_server.url, case).open()
    before = places(tab, case.map_key)["top"]
    tab.locator("[data-testid=stMain]").evaluate("main => main.scrollBy(0, 60)")
    until(lambda: scrolled(tab) > 0, what="a page that has scrolled")
    assert places(tab, case.map_key)["top"] == before


def test_the_first_picture_and_the_next_link_are_in_view(tab: Page, app_server: AppServer) -> None:
    """On a phone the second lane comes under the first."""
    tab.goto(app_server.url)
    lanes = tab.locator(".pv-race-animation img:visible")
    expect(lanes).to_have_count(2)
    shown = [*lanes.all(), tab.get_by_role("link", name="How?")] if width_of(tab) >= BESIDE else lanes.all()[:1]
    for each in shown:
        expect(each).to_be_in_viewport(ratio=1)
    assert scrolled(tab) == 0


def test_the_reason_two_prompts_share_no_more_is_in_view(tab: Page, app_server: AppServer) -> None:
    ExperimentPage(tab, app_server.url, WHY_NOT_SHARED).open()
    figures = tab.locator(".st-key-lesson_picture .pv-figures")
    reasons = tab.locator(".st-key-lesson_picture p, .st-key-lesson_picture li").first
    for each in (figures, reasons):
        expect(each).to_be_in_viewport(ratio=1)
    if width_of(tab) >= BESIDE:
        expect(tab.get_by_label("The first prompt", exact=True)).to_be_in_viewport(ratio=1)
    assert scrolled(tab) == 0
