"""One message that never arrives, of each kind that a room needs: what it said is said again until it has been heard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.app_server import AppServer
from tests.helpers.bad_network import lose_next, num_lost
from tests.helpers.room_page import PATIENCE, RoomPage
from tests.helpers.waiting import until_equal

BATCH = "Memory across a batch"


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Iterator[tuple[Page, Page]]:
    contexts = [browser.new_context(reduced_motion="reduce") for _ in range(2)]
    yield contexts[0].new_page(), contexts[1].new_page()
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def room(pages: tuple[Page, Page], app_server: AppServer) -> tuple[RoomPage, RoomPage]:
    """A presenter and one who follows, on a lesson."""
    presenter, ada = (RoomPage(page, app_server.url) for page in pages)
    ada.join(presenter.start(), "Ada")
    presenter.turn_to(BATCH)
    ada.expect_page(BATCH)
    return presenter, ada


def expect_both_at(room: tuple[RoomPage, RoomPage], value: int) -> None:
    for tab in room:
        expect(tab.slider).to_have_value(str(value), timeout=PATIENCE)
    until_equal(lambda: f"requests={value}" in room[1].page.url, True)


def test_where_the_slider_was_left_is_reported_again(room: tuple[RoomPage, RoomPage]) -> None:
    presenter, _ada = room
    lose_next(presenter.page, '"position"')
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 4)
    assert num_lost(presenter.page) == 1


def test_where_the_presenter_went_is_told_again_on_the_next_line(room: tuple[RoomPage, RoomPage]) -> None:
    presenter, _ada = room
    lose_next(presenter.page, '"place"')
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 3)
    assert num_lost(presenter.page) == 2


def test_who_follows_asks_again_for_the_page(room: tuple[RoomPage, RoomPage]) -> None:
    presenter, ada = room
    lose_next(ada.page, "follow=")
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 2)
    assert num_lost(ada.page) == 1


def test_an_old_report_that_the_browser_sends_along_is_not_taken_for_a_new_one(room: tuple[RoomPage, RoomPage]) -> None:
    """Whoever explored has a report of their own; following drops it in the server, and the next click sends it again."""
    presenter, ada = room
    ada.mode.click()
    ada.press_in_map("ArrowRight", times=5)
    until_equal(lambda: "requests=7" in ada.page.url, True)
    ada.mode.click()
    expect_both_at(room, 2)
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 1)
    ada.page.get_by_label("Block size").fill("8")
    ada.page.keyboard.press("Tab")
    until_equal(lambda: "block_size=8" in ada.page.url, True)
    assert "requests=1" in ada.page.url
    expect(ada.slider).to_have_value("1")
