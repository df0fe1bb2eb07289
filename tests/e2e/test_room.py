"""A room in real browsers: a presenter and two attendees, each in a browser profile of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from course.batch.lesson import LESSON as BATCH
from course.pages import ROOM, lesson_by_key
from course.reserved_space.lesson import LESSON as RESERVED_SPACE
from engine import Engine, SamplingParams
from engine.trace.usage import usage_of
from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import AppServer
from tests.helpers.course_reader import DESKTOP, CourseReader
from tests.helpers.room_page import PATIENCE, RoomPage
from tests.helpers.waiting import until, until_equal
from views.room.attendee_view import DEFAULT_REPLY
from views.room.network import ONLY_HERE
from views.room.room import TEMPERATURE
from views.room.settings import RoomSettings


class Class:
    """The three tabs of one room."""

    def __init__(self, presenter: RoomPage, ada: RoomPage, bob: RoomPage) -> None:
        self.presenter, self.ada, self.bob = presenter, ada, bob
        self.tabs = (presenter, ada, bob)
        self.attendees = (ada, bob)


@pytest.fixture(scope="module")
def tabs(browser: Browser, app_server: AppServer) -> Iterator[tuple[RoomPage, ...]]:
    contexts = [
        browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", color_scheme=scheme)
        for scheme in ("light", "dark", "light")
    ]
    yield tuple(RoomPage(context.new_page(), app_server.url) for context in contexts)
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def code(tabs: tuple[RoomPage, ...]) -> Iterator[str]:
    yield tabs[0].start()
    tabs[0].turn_to(ROOM)
    tabs[0].page.get_by_text("Reset the engine, end the room").click()
    tabs[0].button("End the room").click()
    expect(tabs[1].words).to_have_text("The presenter has ended the room.", timeout=PATIENCE)


@pytest.fixture(scope="module")
def room(tabs: tuple[RoomPage, ...], code: str) -> Class:
    tabs[1].join(code, "Ada")
    tabs[2].join(code)
    return Class(*tabs)


@pytest.fixture(autouse=True)
def nobody_complains(tabs: tuple[RoomPage, ...]) -> Iterator[None]:
    yield
    for tab in tabs:
        tab.watch.check()


def test_the_presenter_sees_code_link_and_network_exposure(room: Class, code: str, app_server: AppServer) -> None:
    page = room.presenter.page
    link = page.get_by_role("link", name=f"{app_server.url}/room?room={code}")
    expect(link).to_be_hidden()  # somebody has joined
    page.get_by_text(f"Invite: {code[:4]}-{code[4:]}").click()
    expect(page.locator("[data-room-code]")).to_have_text(f"{code[:4]}-{code[4:]}")
    expect(link).to_be_visible()
    code_in_squares = page.get_by_alt_text("QR code of the link to this room")
    until(lambda: code_in_squares.evaluate("image => image.naturalWidth") > 100, what="the QR code's picture")
    expect(page.get_by_text(ONLY_HERE)).to_be_visible()
    expect(room.presenter.words).to_have_text(
        "You are presenting. 2 of 2 attendees are here. Stuck: 0.", timeout=PATIENCE
    )


def test_the_presenters_token_is_shown_only_on_demand(room: Class) -> None:
    page = room.presenter.page
    token = page.evaluate("JSON.parse(sessionStorage.getItem('room')).token")
    assert len(token) == 32
    asked, shown = page.locator(".st-key-room_token_shown label"), page.get_by_text(token)
    expect(asked).to_be_visible()
    expect(shown).to_have_count(0)
    asked.click()
    expect(shown).to_be_visible()
    asked.click()
    expect(shown).to_have_count(0)
    for tab in room.attendees:
        expect(tab.page.locator(".st-key-room_token_shown")).to_have_count(0)


def test_prompts_of_two_tabs_share_a_batch_and_every_tab_shows_the_engines_numbers(room: Class) -> None:
    room.ada.send("abcabc")
    room.bob.send("abcabd <b>x</b>")
    expect(room.presenter.page.locator("[data-request]")).to_have_count(2, timeout=PATIENCE)
    for _ in range(3):
        before = int(room.presenter.figure("step").inner_text())
        room.presenter.button("Step").click()
        room.presenter.expect_figure("step", str(before + 1))
    engine = Engine(RoomSettings().config("tiny-random"))
    for prompt in ("abcabc", "abcabd <b>x</b>"):
        engine.add_request(prompt, SamplingParams(temperature=TEMPERATURE, max_tokens=DEFAULT_REPLY, seed=0))
    for _ in range(3):
        engine.step()
    usage = usage_of(engine.snapshot())
    for tab in room.tabs:
        tab.expect_figure("step", "3")
        tab.expect_figure("used", str(usage.num_used_blocks))
        tab.expect_figure("free", str(usage.num_free_blocks))
        tab.expect_figure("written", f"{usage.num_written_slots} of {usage.num_held_slots}")
        until_equal(tab.page.locator("[data-prompt=B]").text_content, "abcabd <b>x</b>")
        expect(tab.page.locator(".mm .lanes")).to_contain_text("B")
    until_equal(room.ada.requests, [("A", "running", True), ("B", "running", False)])
    until_equal(room.bob.requests, [("B", "running", True), ("A", "running", False)])


def test_followers_see_the_presenters_step(room: Class) -> None:
    room.presenter.press_in_map("Home")
    for tab in room.attendees:
        expect(tab.slider).to_have_value("0", timeout=PATIENCE)
    room.presenter.press_in_map("End")
    for tab in room.attendees:
        expect(tab.slider).to_have_value("3", timeout=PATIENCE)


def test_an_attendee_has_no_controls_and_sees_no_names(room: Class) -> None:
    for tab in room.attendees:
        for name in ("Step", "Run", "Pause", "Reset", "End the room"):
            expect(tab.button(name)).to_have_count(0)
        assert "Names" not in tab.page.inner_text("[data-testid=stMain]")
        assert "Guest 1" not in tab.page.content()
    assert "Ada" not in room.bob.page.content()


@pytest.mark.parametrize("size", [(1280, 900), (1024, 768), (375, 812)], ids=["desktop", "projector", "phone"])
@pytest.mark.slow
def test_the_page_in_a_room_is_accessible_in_both_themes_and_never_scrolls_sideways(
    room: Class, size: tuple[int, int]
) -> None:
    for tab in (room.presenter, room.ada):
        reader = CourseReader(tab.page, tab.base_url)
        reader.resize(*size)
        reader.settle()
        expect_no_violations(tab.page)
        reader.expect_to_fit(size[0])
        reader.resize(*DESKTOP.values())  # type: ignore[arg-type]


def test_i_am_stuck_is_counted_and_names_are_shown_to_the_presenter_only(room: Class) -> None:
    room.ada.stuck.click()
    expect(room.ada.stuck).to_have_attribute("aria-pressed", "true", timeout=PATIENCE)
    expect(room.presenter.words).to_have_text(
        "You are presenting. 2 of 2 attendees are here. Stuck: 1.", timeout=PATIENCE
    )
    assert "Ada" not in room.presenter.page.locator(".st-key-room_bar").inner_text()
    room.presenter.page.get_by_text("Names (only you can see them)").click()
    expect(room.presenter.page.locator("[data-people=stuck]")).to_have_text("Ada", timeout=PATIENCE)
    expect(room.presenter.page.locator("[data-people=here]")).to_have_text("Ada, Guest 1")
    expect(room.presenter.page.locator("[data-people=requests]")).to_have_text("A: Ada, B: Guest 1")
    room.ada.stuck.click()
    expect(room.presenter.page.locator("[data-people=stuck]")).to_have_text("nobody", timeout=PATIENCE)


def test_an_exhausted_quota_is_reported_in_one_sentence(room: Class) -> None:
    room.ada.send("one more")
    expect(room.ada.page.locator("[data-share]")).to_contain_text(
        "You have sent 2 of 20 prompts and asked for 32 of 600 new tokens; 2 of at most 2 are in progress.",
        timeout=PATIENCE,
    )
    room.ada.send("and another")
    expect(room.ada.page.get_by_role("alert")).to_have_text(
        "2 of your prompts are in progress, the most allowed at once. Wait for one to finish."
    )


def test_followers_follow_the_presenters_page_and_value(room: Class) -> None:
    room.presenter.turn_to(BATCH)
    for tab in room.attendees:
        tab.expect_page(BATCH)
        expect(tab.slider).to_have_value("5", timeout=PATIENCE)
    room.presenter.press_in_map("ArrowLeft", times=2)
    for tab in room.attendees:
        expect(tab.slider).to_have_value("3", timeout=PATIENCE)
        tab.page.wait_for_url(lambda url: "requests=3" in url)
    expect(room.presenter.figure("step")).to_have_count(0)


def test_exploring_alone_stays_and_returns_with_one_click(room: Class) -> None:
    room.ada.mode.click()
    expect(room.ada.words).to_have_text("You are exploring on your own.")
    room.ada.press_in_map("ArrowRight", times=4)
    room.presenter.press_in_map("ArrowLeft")
    expect(room.bob.slider).to_have_value("2", timeout=PATIENCE)
    expect(room.ada.slider).to_have_value("7")
    room.ada.mode.click()
    expect(room.ada.slider).to_have_value("2", timeout=PATIENCE)
    expect(room.ada.words).to_have_text("You are following the presenter.")


def test_choosing_another_page_stops_following(room: Class) -> None:
    room.bob.turn_to(RESERVED_SPACE)
    expect(room.bob.words).to_have_text("You are exploring on your own.", timeout=PATIENCE)
    room.bob.mode.click()
    room.bob.expect_page(BATCH)
    expect(room.bob.slider).to_have_value("2", timeout=PATIENCE)


def test_a_presenters_default_value_replaces_a_followers_own(room: Class) -> None:
    """The address says nothing of a default, and the follower's tab remembers a value of its own."""
    room.presenter.press_in_map("ArrowRight", times=3)
    for tab in room.attendees:
        expect(tab.slider).to_have_value("5", timeout=PATIENCE)


def test_predictions_become_a_histogram_that_only_the_presenter_sees(room: Class) -> None:
    choices = lesson_by_key("batch").question(0).choices
    for tab, index in ((room.ada, 1), (room.bob, 1), (room.bob, 2)):
        tab.page.get_by_role("radiogroup").get_by_text(choices[index].text, exact=True).click()
        tab.settle()
    votes = room.presenter.page.locator(".pv-votes")
    expect(votes.locator("[data-votes=all]")).to_have_text("2", timeout=PATIENCE)
    counts = [{1: "1", 2: "1"}.get(number, "0") for number in range(len(choices))]
    until_equal(votes.locator("li b").all_inner_texts, counts)
    for tab in room.attendees:
        expect(tab.page.locator(".pv-votes")).to_have_count(0)


def test_a_reload_keeps_the_room_the_page_and_the_mode(room: Class) -> None:
    for tab in (room.bob, room.presenter):
        tab.page.reload()
        tab.expect_page(BATCH)
    expect(room.bob.words).to_have_text("You are following the presenter.", timeout=PATIENCE)
    expect(room.presenter.words).to_contain_text("You are presenting.", timeout=PATIENCE)
    expect(room.presenter.page.locator(".pv-votes")).to_be_visible(timeout=PATIENCE)


def test_a_second_device_presents_with_the_token_only(room: Class, browser: Browser, app_server: AppServer) -> None:
    token = room.presenter.page.evaluate("JSON.parse(sessionStorage.getItem('room')).token")
    context = browser.new_context(reduced_motion="reduce")
    second = RoomPage(context.new_page(), app_server.url)
    second.page.goto(f"{app_server.url}/room")
    for typed, answer in (("x" * 32, None), (token, "You are presenting.")):
        second.page.get_by_text("Take over a room you present").click() if answer is None else None
        second.page.get_by_label("The presenter's token").fill(typed)
        second.button("Take over").click()
        if answer is None:
            expect(second.page.get_by_role("alert")).to_have_text(
                "No room on this server has this token.", timeout=PATIENCE
            )
        else:
            expect(second.words).to_contain_text(answer, timeout=PATIENCE)
    expect(second.button("Step")).to_be_visible(timeout=PATIENCE)
    room.ada.expect_page(ROOM)
    second.watch.check()
    context.close()
