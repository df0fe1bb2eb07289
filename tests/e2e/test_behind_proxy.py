"""Below `/kv` of another host, behind a real nginx with TLS: pages, links, rooms, live frames, files and figures.

And behind proxies that were set up badly: without the WebSocket's upgrade, with it for Streamlit's own path alone, and
with another Host header.
"""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, expect

from course.growth.lesson import LESSON as GROWTH
from engine import Trace
from tests.helpers.app_server import ROOT, AppServer, running_app
from tests.helpers.browser import launched
from tests.helpers.live_page import LivePage
from tests.helpers.nginx import KEEP_HOST, NAME, UPGRADE, location, running_nginx
from tests.helpers.room_page import PATIENCE, RoomPage
from views.room.network import REACHED, qr_code
from views.server.index_page import NO_UPGRADE

pytestmark = [pytest.mark.slow, pytest.mark.every_case]
BASE = "/kv"
SETTINGS = {"PAGED_KV_MODEL": "tiny-random", "PAGED_KV_METRICS": "1", "PAGED_KV_HOSTS": NAME}


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """One that takes `kv.test` for this machine."""
    browser = launched(playwright, f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    log_file = tmp_path_factory.mktemp("below_a_path") / "server.log"
    with running_app(ROOT / "app.py", log_file, SETTINGS, base_path=BASE) as server:
        yield server


@pytest.fixture
def contexts(browser: Browser) -> Iterator[list[BrowserContext]]:
    """Three people's browsers."""
    people = [browser.new_context(ignore_https_errors=True, reduced_motion="reduce") for _ in range(3)]
    yield people
    for context in people:
        context.close()


def upstream(server: AppServer) -> str:
    return server.url.removesuffix(BASE)


def fetched(address: str) -> tuple[int, str]:
    """Status and text of a plain request through the proxy."""
    port = address.split(":")[2].split("/")[0]
    request = urllib.request.Request(address.replace(NAME, "127.0.0.1"), headers={"Host": f"{NAME}:{port}"})
    with urllib.request.urlopen(request, timeout=10, context=ssl._create_unverified_context()) as answer:
        return answer.status, answer.read().decode()


def test_a_room_of_three_below_a_path_with_tls_outside(
    server: AppServer, contexts: list[BrowserContext], tmp_path: Path
) -> None:
    with running_nginx(tmp_path, [location(BASE, upstream(server), [*UPGRADE, *KEEP_HOST])]) as origin:
        presenter, ada, bob = (RoomPage(context.new_page(), origin + BASE) for context in contexts)
        presenter.page.goto(origin + BASE)
        expect(presenter.page).to_have_url(f"{origin}{BASE}/")
        code = presenter.start()
        invitation = presenter.page.locator(".pv-invite")
        link = f"{origin}{BASE}/room?room={code}"
        expect(invitation.get_by_role("link")).to_have_attribute("href", link)
        expect(invitation.locator("img")).to_have_attribute("src", qr_code(link))
        expect(invitation.locator(".pv-notice")).to_have_text(REACHED.format(host=origin.removeprefix("https://")))

        for attendee in (ada, bob):
            attendee.join(code)
            expect(attendee.words).to_have_text("You are following the presenter.", timeout=PATIENCE)
        ada.send("one two three")
        presenter.button("Step").click()
        for person in (presenter, ada, bob):
            person.expect_figure("step", "1")
            expect(person.slider).to_have_attribute("max", "1", timeout=PATIENCE)  # over the frames' WebSocket
            expect(person.page.locator(".mm .fallback")).to_be_hidden()
        presenter.turn_to(GROWTH)
        for attendee in (ada, bob):
            attendee.expect_page(GROWTH)
            assert attendee.page.url.startswith(f"{origin}{BASE}/{GROWTH.url_path}?")
        for person in (presenter, ada, bob):
            person.watch.check()


def test_deep_links_live_frames_downloads_and_metrics_are_below_the_path_too(
    server: AppServer, contexts: list[BrowserContext], tmp_path: Path
) -> None:
    with running_nginx(tmp_path, [location(BASE, upstream(server), [*UPGRADE, *KEEP_HOST])]) as origin:
        person = RoomPage(contexts[0].new_page(), origin + BASE)
        person.page.goto(f"{origin}{BASE}/{GROWTH.url_path}?tokens=5")
        person.expect_page(GROWTH)
        assert "tokens=5" in person.page.url
        live = LivePage(person.page, origin + BASE).open()
        live.add()
        live.step(2)
        expect(person.slider).to_have_attribute("max", "2")
        live.tool("Download")
        with person.page.expect_download() as download:
            live.button("live_json").click()
        assert Trace.from_json(download.value.path().read_text("utf-8")).num_steps == 2
        status, text = fetched(f"{origin}{BASE}/metrics")
        assert status == 200 and "vllm:num_requests_running" in text
        person.watch.check()


def test_the_page_says_why_it_stays_empty_when_a_proxy_drops_the_upgrade(
    server: AppServer, contexts: list[BrowserContext], tmp_path: Path
) -> None:
    with running_nginx(tmp_path, [location(BASE, upstream(server), KEEP_HOST)]) as origin:
        page = contexts[0].new_page()
        page.goto(f"{origin}{BASE}/{GROWTH.url_path}")
        alert = page.locator("#no-websocket")
        expect(alert).to_contain_text("The server answers, but its WebSocket does not come through.", timeout=PATIENCE)
        expect(alert).to_contain_text("docs/deploying.md")
        assert NO_UPGRADE in server.log


def test_frames_are_fetched_and_said_to_be_when_the_upgrade_is_for_streamlits_path_alone(
    server: AppServer, contexts: list[BrowserContext], tmp_path: Path
) -> None:
    """What many pages about Streamlit behind nginx tell to write."""
    locations = [
        location(f"{BASE}/_stcore/stream", upstream(server), [*UPGRADE, *KEEP_HOST]),
        location(BASE, upstream(server), KEEP_HOST),
    ]
    with running_nginx(tmp_path, locations) as origin:
        presenter, ada = (RoomPage(context.new_page(), origin + BASE) for context in contexts[:2])
        code = presenter.start()
        expect(presenter.words).to_contain_text("refuses this room's WebSocket", timeout=PATIENCE)
        ada.join(code)
        expect(ada.words).to_contain_text("this tab does not follow the presenter", timeout=PATIENCE)
        ada.send("one two three")
        presenter.button("Step").click()
        for person in (presenter, ada):
            expect(person.page.locator(".mm .fallback")).to_contain_text("A fall-back", timeout=PATIENCE)
            expect(person.slider).to_have_attribute("max", "1", timeout=PATIENCE)


def test_a_proxy_that_sends_its_own_host_is_believed_when_a_setting_names_it(
    browser: Browser, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = SETTINGS | {"PAGED_KV_TRUSTED_PROXIES": "127.0.0.1"}
    with running_app(ROOT / "app.py", tmp_path / "server.log", settings) as server:
        told = "proxy_set_header X-Forwarded-Host $http_host;"
        stripped = location(f"{BASE}/", f"{server.url}/", [*UPGRADE, told])
        with running_nginx(tmp_path_factory.mktemp("nginx"), [stripped]) as origin:
            context = browser.new_context(ignore_https_errors=True)
            person = RoomPage(context.new_page(), origin + BASE)
            code = person.start()
            link = f"{origin}{BASE}/room?room={code}"
            expect(person.page.locator(".pv-invite").get_by_role("link")).to_have_attribute("href", link)
            expect(person.words).to_contain_text("You are presenting.", timeout=PATIENCE)
            person.watch.check()
            context.close()
