"""What a workshop goes through: the server dies and comes back, the network goes away, tabs close, the presenter too.

A server of its own, behind a network that can be cut. Streamlit forgets a tab after two seconds here instead of two
minutes, so that a loss of five seconds is to it what one of 130 seconds is in a workshop.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlparse

import pytest
from playwright.sync_api import Browser, expect

from course.batch.lesson import LESSON as BATCH
from course.pages import ROOM
from tests.helpers.bad_network import Relay, relay_to
from tests.helpers.mortal_server import MortalServer
from tests.helpers.room_page import PATIENCE, RoomPage

pytestmark = pytest.mark.slow  # faults of network and server are rare

SECONDS_UNTIL_FORGOTTEN = 2
LONG_AND_SHORT = pytest.mark.parametrize(
    "seconds", [pytest.param(1, id="known still"), pytest.param(5, id="forgotten by then")]
)
"""After about three seconds Streamlit says in a dialog that the connection is lost, and the dialog takes the focus."""
ENVIRONMENT = {
    "PAGED_KV_MODEL": "tiny-random",
    "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": str(SECONDS_UNTIL_FORGOTTEN),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MortalServer]:
    server = MortalServer(tmp_path_factory.mktemp("room_faults"), ENVIRONMENT)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def network(server: MortalServer) -> Iterator[Relay]:
    assert server.port is not None
    with relay_to(server.port) as relay:
        yield relay


@pytest.fixture(scope="module")
def tabs(browser: Browser, network: Relay) -> Iterator[list[RoomPage]]:
    contexts = [browser.new_context(reduced_motion="reduce") for _ in range(3)]
    yield [RoomPage(context.new_page(), network.url) for context in contexts]
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def code(tabs: list[RoomPage]) -> str:
    """Everybody follows on a lesson, at a value that is not its default."""
    code = tabs[0].start()
    tabs[1].join(code, "Ada")
    tabs[2].join(code, "Bob")
    tabs[0].turn_to(BATCH)
    tabs[0].press_in_map("ArrowLeft", times=2)
    for tab in tabs:
        expect(tab.slider).to_have_value("3", timeout=PATIENCE)
    return code


def expect_all_at_work(tabs: list[RoomPage], value: str) -> None:
    """On the page, at the value, in the room, and still led by the presenter."""
    expect(tabs[0].words).to_have_text("You are presenting. 2 of 2 attendees are here. Stuck: 0.", timeout=PATIENCE)
    for tab in tabs[1:]:
        expect(tab.words).to_have_text("You are following the presenter.", timeout=PATIENCE)
    for tab in tabs:
        tab.expect_page(BATCH)
        expect(tab.slider).to_have_value(value, timeout=PATIENCE)


@LONG_AND_SHORT
def test_every_tab_keeps_its_position_after_a_lost_network(
    tabs: list[RoomPage], code: str, network: Relay, seconds: int
) -> None:
    network.cut()
    expect(tabs[1].words).to_have_text("The connection is lost. Reconnecting.", timeout=PATIENCE)
    tabs[0].page.wait_for_timeout(seconds * 1000)
    network.mend()
    expect_all_at_work(tabs, "3")
    expect(tabs[0].slider).to_be_focused()
    tabs[0].press_in_map("ArrowRight")
    expect_all_at_work(tabs, "4")
    tabs[0].press_in_map("ArrowLeft")
    expect_all_at_work(tabs, "3")


@LONG_AND_SHORT
def test_moves_made_offline_are_sent_after_reconnecting(
    tabs: list[RoomPage], code: str, network: Relay, seconds: int
) -> None:
    network.cut()
    tabs[0].press_in_map("ArrowRight")  # before the dialog comes
    expect(tabs[0].words).to_have_text("The connection is lost. Reconnecting.", timeout=PATIENCE)
    tabs[0].page.wait_for_timeout(seconds * 1000)
    network.mend()
    expect_all_at_work(tabs, "4")
    tabs[0].press_in_map("ArrowLeft")
    expect_all_at_work(tabs, "3")


def test_every_tab_keeps_its_room_after_a_server_restart(tabs: list[RoomPage], code: str, server: MortalServer) -> None:
    server.kill()
    expect(tabs[1].words).to_have_text("The connection is lost. Reconnecting.", timeout=PATIENCE)
    server.start()
    expect_all_at_work(tabs, "3")
    expect(tabs[0].slider).to_be_focused()
    for tab in tabs:
        tab.page.wait_for_url(lambda url: {("room", code), ("requests", "3")} <= set(parse_qsl(urlparse(url).query)))
    tabs[0].press_in_map("ArrowRight")
    expect_all_at_work(tabs, "4")
    assert "Traceback" not in server.app.log


def test_attendees_wait_for_a_presenter_who_returns_with_the_token(
    tabs: list[RoomPage], code: str, server: MortalServer, browser: Browser, network: Relay
) -> None:
    """The presenter's machine is gone when the server comes back: nobody else can open the room."""
    storage = tabs[0].page.evaluate("sessionStorage.getItem('room')")
    tabs[0].page.context.close()
    server.kill()
    server.start()
    for tab in tabs[1:]:
        expect(tab.words).to_have_text(
            "This room is not open on this server now. It reopens when its presenter reconnects.", timeout=PATIENCE
        )
    context = browser.new_context(reduced_motion="reduce")
    context.add_init_script(f"sessionStorage.getItem('room') ?? sessionStorage.setItem('room', {storage!r})")
    tabs[0] = RoomPage(context.new_page(), network.url)
    tabs[0].page.goto(f"{network.url}/batch?room={code}&requests=4")
    expect_all_at_work(tabs, "4")


def test_a_tab_closed_during_its_reply_frees_its_blocks(tabs: list[RoomPage], code: str) -> None:
    """Its prompt goes on for a minute, in case the tab comes back; `test_room.py` of the units holds what follows."""
    tabs[0].turn_to(ROOM)
    for tab in tabs[1:]:
        tab.expect_page(ROOM)
        tab.expect_engine()
        tab.send(f"prompt of {tab.page.url[-3:]}")
    tabs[0].button("Step").click()
    tabs[0].expect_figure("step", "1")
    tabs[2].page.close()
    expect(tabs[0].words).to_have_text("You are presenting. 1 of 2 attendees are here. Stuck: 0.", timeout=PATIENCE)
    tabs[0].button("Run").click()
    expect(tabs[1].page.locator("[data-request][data-status=finished]")).to_have_count(2, timeout=PATIENCE)
    tabs[1].expect_figure("used", "0")
