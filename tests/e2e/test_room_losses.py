"""One message that never arrives, of each kind that a room needs: what it said is said again until it is heard."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from course.batch.lesson import LESSON as BATCH
from tests.helpers.app_server import AppServer
from tests.helpers.bad_network import lose_next, num_lost
from tests.helpers.room_page import PATIENCE, RoomPage

pytestmark = pytest.mark.slow  # a lost connection is rare


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
    for tab in (presenter, ada):
        expect(tab.slider).to_have_value("5", timeout=PATIENCE)
        tab.settle()
    return presenter, ada


def expect_both_at(room: tuple[RoomPage, RoomPage], value: int) -> None:
    for tab in room:
        expect(tab.slider).to_have_value(str(value), timeout=PATIENCE)
        expect(tab.page).to_have_url(re.compile(rf"requests={value}\b"), timeout=PATIENCE)


def test_a_lost_slider_report_is_sent_again(room: tuple[RoomPage, RoomPage]) -> None:
    _presenter, ada = room
    ada.mode.click()
    lose_next(ada.page, '"position"')
    ada.press_in_map("ArrowLeft")
    expect(ada.page).to_have_url(re.compile("requests=4"), timeout=PATIENCE)
    assert num_lost(ada.page) == 1
    ada.mode.click()
    expect(ada.slider).to_have_value("5", timeout=PATIENCE)


def test_a_lost_presenter_move_is_sent_again_on_the_next_connection(room: tuple[RoomPage, RoomPage]) -> None:
    presenter, _ada = room
    lose_next(presenter.page, '"place"')
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 4)
    assert num_lost(presenter.page) == 1


def test_a_follower_requests_a_lost_page_again(room: tuple[RoomPage, RoomPage]) -> None:
    presenter, ada = room
    lose_next(ada.page, "follow=")
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 3)
    assert num_lost(ada.page) == 2


def test_a_stale_report_sent_with_a_click_is_ignored(room: tuple[RoomPage, RoomPage]) -> None:
    """Who explored has reported a place. Following drops it on the server, and the next click brings it again."""
    presenter, ada = room
    ada.mode.click()
    ada.press_in_map("ArrowRight", times=4)
    expect(ada.page).to_have_url(re.compile("requests=7"), timeout=PATIENCE)
    ada.mode.click()
    expect_both_at(room, 3)
    presenter.press_in_map("ArrowLeft")
    expect_both_at(room, 2)
    ada.page.get_by_label("Block size").fill("8")
    ada.page.keyboard.press("Tab")
    expect(ada.page).to_have_url(re.compile("block_size=8"), timeout=PATIENCE)
    assert "requests=2" in ada.page.url
    expect(ada.slider).to_have_value("2")
