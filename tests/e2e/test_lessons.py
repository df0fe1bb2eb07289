"""Lessons in a real browser: the picture follows the drag, the keyboard is enough, an address brings the page back."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from course.messages import fill
from course.pages import LIVE_ENGINE
from engine.model.kv_cache_size import WELL_KNOWN, ModelFacts, size_in_words
from tests.helpers.app_server import AppServer
from tests.helpers.lesson_page import LessonPage
from tests.helpers.lessons import LESSONS, Golden, LessonCase
from tests.helpers.navigation import navigation_link
from tests.helpers.waiting import until, until_equal

each_lesson = pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)
GOLDENS = [pytest.param(case, golden, id=f"{case.name}-{golden.value}") for case in LESSONS for golden in case.goldens]


@pytest.mark.parametrize(("case", "golden"), GOLDENS)
def test_the_worked_examples_figures_are_on_the_rendered_page(
    page: Page, app_server: AppServer, case: LessonCase, golden: Golden
) -> None:
    lesson = LessonPage(page, app_server.url, case).open(**golden.query)
    until_equal(lambda: {key: text for key, text in lesson.figures().items() if key in golden.figures}, golden.figures)
    for sentence in golden.says:
        until(lambda sentence=sentence: sentence in lesson.told(), what=sentence)


@each_lesson
def test_the_picture_follows_the_drag_and_the_script_reruns_on_release(
    page: Page, app_server: AppServer, case: LessonCase
) -> None:
    lesson = LessonPage(page, app_server.url, case).open()
    y = lesson.grab()
    page.wait_for_timeout(100)
    until(lambda: lesson.told() == captions_of_the_frame_shown(lesson), what="telling the first frame")
    cells, figures, address = lesson.map.locator("svg").first.inner_html(), lesson.figures(), page.url
    lesson.drag_to(0.6, y)
    until(lambda: lesson.figures() != figures, what="other figures")
    until(lambda: lesson.map.locator("svg").first.inner_html() != cells, what="another picture")
    until(lambda: lesson.told() == captions_of_the_frame_shown(lesson), what="telling the frame dragged to")
    page.wait_for_timeout(400)
    assert page.url == address, "nothing was asked of the server while dragging"
    dragged = lesson.figures(), lesson.told()
    page.mouse.up()
    page.wait_for_url(lambda url: url != address)
    lesson.settle()
    until_equal(lambda: (lesson.figures(), lesson.told()), dragged)


def captions_of_the_frame_shown(lesson: LessonPage) -> str:
    """What the engine's facts say where the slider stands, for every map on the page that has captions."""
    pictures = lesson.case.pictures()
    value = lesson.case.picture.values[int(lesson.slider.input_value())]
    told = [fill(caption, picture.facts(value)) for picture in pictures.values() for caption in picture.texts.captions]
    return "\n\n".join(told).replace("**", "")


@each_lesson
def test_a_reload_and_a_copied_url_restore_the_view(page: Page, app_server: AppServer, case: LessonCase) -> None:
    lesson = LessonPage(page, app_server.url, case).open(seed="3")
    lesson.slider.focus()
    page.keyboard.press("End" if case.opens_at == 0 else "Home")
    page.wait_for_url(lambda url: f"{case.slider}=" in url)
    address = page.url
    page.keyboard.press("ArrowLeft" if case.opens_at == 0 else "ArrowRight")
    page.wait_for_url(lambda url: url != address)
    lesson.settle()
    view = lesson.view()
    page.reload()
    lesson.settle()
    until_equal(lesson.view, view)
    copied = page.url
    page.goto("about:blank")
    page.goto(copied)
    lesson.settle()
    until_equal(lesson.view, view)


@each_lesson
@pytest.mark.slow
def test_the_position_survives_a_visit_to_another_page(page: Page, app_server: AppServer, case: LessonCase) -> None:
    value = str(case.goldens[0].scene().values[2])
    lesson = LessonPage(page, app_server.url, case).open(**{case.slider: value})
    figures = lesson.figures()
    navigation_link(page, LIVE_ENGINE).click()
    expect(page.get_by_role("heading", name="Live engine")).to_be_visible()
    navigation_link(page, case.page).click()
    lesson.settle()
    until_equal(lesson.figures, figures)
    page.wait_for_url(lambda url: f"{case.slider}={value}" in url)


@each_lesson
def test_a_lesson_works_by_keyboard_alone(page: Page, app_server: AppServer, case: LessonCase) -> None:
    """Answer the question, ask another, step the picture, unfold its text, go on to the next page."""
    lesson = LessonPage(page, app_server.url, case).open()
    asked = lesson.question().inner_text()
    tab_to(page, f".st-key-question_{case.lesson} summary")
    page.keyboard.press("Enter")
    tab_to(page, "input[type=radio]")
    page.keyboard.press(" ")
    expect(page.locator(".pv-verdict strong")).to_be_visible()
    tab_to(page, f".st-key-another_{case.lesson} button")
    page.keyboard.press("Enter")
    expect(lesson.question()).not_to_have_text(asked)
    lesson.settle()
    tab_to(page, "input.range")
    figures = lesson.figures()
    page.keyboard.press("End" if case.opens_at == 0 else "Home")
    until(lambda: lesson.figures() != figures, what="other figures")
    page.wait_for_url(lambda url: f"{case.slider}=" in url)
    lesson.settle()
    tab_to(page, ".data-tables summary")
    page.keyboard.press("Enter")
    expect(lesson.map.locator(".data-tables table").first).to_be_visible()
    tab_to(page, "[data-testid=stPageLink-NavLink]")
    page.keyboard.press("Enter")
    expect(page.locator(f".st-key-{case.map_key}")).to_have_count(0)


def tab_to(page: Page, selector: str, limit: int = 120) -> None:
    """Press Tab until the focus is on such an element, inside shadow roots too."""
    focused = """selector => {
        let e = document.activeElement;
        while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
        return Boolean(e?.matches(selector));
    }"""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate(focused, selector):
            return
    raise AssertionError(f"{selector} was not reached with Tab")


@each_lesson
def test_an_example_moves_the_picture_also_back_to_where_it_was(
    page: Page, app_server: AppServer, case: LessonCase
) -> None:
    lesson = LessonPage(page, app_server.url, case).open()
    examples = page.locator(f".st-key-examples_{case.lesson} button")
    if examples.count() == 0:
        pytest.skip("this lesson has no prepared examples")
    before = lesson.figures()
    lesson.slider.focus()
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: f"{case.slider}=0" in url)
    at_start = lesson.figures()
    assert at_start != before
    examples.first.click()
    until(lambda: lesson.figures() != at_start, what="the example's figures")
    figures = lesson.figures()
    lesson.slider.focus()
    address = page.url
    page.keyboard.press("ArrowLeft")
    until(lambda: lesson.figures() != figures, what="other figures")
    page.wait_for_url(lambda url: url != address)
    examples.first.click()
    until_equal(lesson.figures, figures)


@pytest.mark.slow
def test_requests_are_added_and_finished_in_the_browser(page: Page, app_server: AppServer) -> None:
    [case] = [case for case in LESSONS if case.lesson == "fragmentation"]
    lesson = LessonPage(page, app_server.url, case).open(do="A8 B4")
    page.get_by_role("button", name="Add request").click()
    page.wait_for_url("**do=A8+B4+C6*")
    until_equal(lambda: lesson.figures().get("waste.free"), "14")
    lesson.settle()
    page.locator(".st-key-fragmentation_finish").get_by_text("A", exact=True).click()
    page.wait_for_url("**do=A8+B4+C6+-A*")
    until_equal(lambda: lesson.figures().get("waste.free"), "22")


def test_the_figures_are_those_of_the_chosen_model(page: Page, app_server: AppServer) -> None:
    """Frames of two models differ in their figures alone: the map must not take them for frames it has."""
    [case] = [case for case in LESSONS if case.lesson == "what_is_cached"]
    lesson = LessonPage(page, app_server.url, case).open(tokens="7")
    until_equal(lambda: lesson.figures().get("cache_size"), size_in_words(known_model("SmolLM2-135M").kv_bytes(7)))
    page.locator(".st-key-what_is_cached_model").get_by_role("combobox").click()
    page.get_by_role("option", name="OPT-13B").click()
    page.wait_for_url("**model=OPT-13B*")
    until_equal(lambda: lesson.figures().get("cache_size"), size_in_words(known_model("OPT-13B").kv_bytes(7)))


def known_model(name: str) -> ModelFacts:
    return next(model for model in WELL_KNOWN if model.name == name)
