"""The server from its first visitor to its end: deep links, engines of closed tabs, the live line, a clean stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, WebSocket, expect

from course.pages import HOME
from tests.helpers.app_server import ROOT, AppServer, running_app, stop
from tests.helpers.live_page import MODEL_MILLISECONDS, LivePage
from tests.helpers.navigation import navigation_link
from tests.helpers.waiting import until, until_at_rest
from views.error_handler import SENTENCE

TINY = {"PAGED_KV_MODEL": "tiny-random"}
SECONDS_TO_STOP = 3.0


@pytest.fixture(scope="module")
def tab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    log_file = tmp_path_factory.mktemp("tab_app") / "server.log"
    with running_app(ROOT / "tests" / "e2e" / "apps" / "tab_app.py", log_file) as server:
        yield server


@pytest.mark.slow
def test_a_new_server_answers_a_deep_link_and_stops_in_three_seconds_during_a_run(page: Page, tmp_path: Path) -> None:
    with running_app(ROOT / "app.py", tmp_path / "server.log", TINY) as server:
        live = LivePage(page, server.url).open(max_tokens=200, num_blocks=200, stop_at_end="false")
        expect(page).to_have_title("Live engine")
        expect(navigation_link(page, HOME)).to_be_visible()
        live.add()
        live.button("run").click()
        live.wait_for_step(2)
        page.goto("about:blank")  # so that a lost connection is not held against the page
        seconds = stop(server.process)
    assert seconds < SECONDS_TO_STOP
    assert "Traceback" not in server.log
    assert "Error" not in server.log


@pytest.mark.slow
def test_the_engine_of_a_closed_tab_is_freed_and_others_stay(context: BrowserContext, tab_server: AppServer) -> None:
    staying, leaving = context.new_page(), context.new_page()
    for tab in (staying, leaving):
        tab.goto(tab_server.url)
        expect(tab.get_by_text("open engines")).to_be_visible(timeout=MODEL_MILLISECONDS)
    expect(leaving.get_by_text("open engines: 2")).to_be_visible()
    leaving.close()
    until(lambda: num_open_engines(staying) == 1, what="letting go of the closed tab's engine")
    staying.wait_for_timeout(1000)
    assert num_open_engines(staying) == 1, "its own stays"


def is_line(socket: WebSocket) -> bool:
    """The live page opens one once its model has loaded."""
    return "/api/frames/" in socket.url


def num_open_engines(tab: Page) -> int:
    """Asked anew."""
    tab.get_by_role("button", name="Look").click()
    until_at_rest(tab)
    words = tab.get_by_text("open engines: ").inner_text()
    return int(words.removeprefix("open engines: "))


@pytest.mark.parametrize("where", ["script", "callback", "fragment"])
def test_an_exception_in_a_page_is_one_sentence_and_logged(page: Page, tmp_path: Path, where: str) -> None:
    with running_app(ROOT / "tests" / "e2e" / "apps" / "faulty_app.py", tmp_path / "server.log") as server:
        page.goto(f"{server.url}/?where={where}")
        page.get_by_role("button", name="Go").click()
        expect(page.get_by_role("alert")).to_have_text(SENTENCE)
        assert "RuntimeError" not in page.inner_text("body")
        page.goto("about:blank")
        until(lambda: "RuntimeError: on purpose" in server.log, what="the details in the log")


@pytest.mark.slow
def test_a_click_during_the_callback_of_another_waits_for_its_end(page: Page, tmp_path: Path) -> None:
    with running_app(ROOT / "tests" / "e2e" / "apps" / "slow_callback_app.py", tmp_path / "server.log") as server:
        page.goto(server.url)
        page.get_by_role("button", name="Slow").click()
        page.wait_for_timeout(300)
        page.get_by_role("button", name="Fast").click()
        expect(page.get_by_text("log: ")).to_have_text("log: slow begins, slow ends, fast")
        expect(page.get_by_text("at once")).to_have_text("at most 1 at once")
        page.goto("about:blank")


LATE_TASKS = """() => {
    const setOnTime = window.setTimeout;
    window.setTimeout = (task, delay, ...rest) => setOnTime(task, delay || 1200, ...rest);
}"""


@pytest.mark.slow
def test_a_click_acts_once_beside_fragments_that_rerun_by_themselves(page: Page, tmp_path: Path) -> None:
    """The browser sends a click in a task of its own. Here that task comes late, after the timers of the fragments."""
    with running_app(ROOT / "tests" / "e2e" / "apps" / "fragment_clocks_app.py", tmp_path / "server.log") as server:
        page.goto(server.url)
        clicks = page.get_by_text("clicks: ")
        expect(clicks).to_have_text("clicks: 0")
        expect(page.get_by_text("clock 3")).to_be_visible()
        page.evaluate(LATE_TASKS)
        for number in range(1, 4):
            page.get_by_role("button", name="Count").click()
            expect(clicks).to_have_text(f"clicks: {number}")
        page.goto("about:blank")


@pytest.mark.slow
def test_another_origin_cannot_open_the_frames_websocket(
    page: Page, context: BrowserContext, app_server: AppServer, tab_server: AppServer
) -> None:
    with page.expect_websocket(is_line, timeout=MODEL_MILLISECONDS) as line:
        LivePage(page, app_server.url).open()
    path = line.value.url
    assert _close_code(page, path, seconds=0.5) is None, "our own page is served"
    stranger = context.new_page()
    stranger.goto(tab_server.url)
    assert _close_code(stranger, path) == 1008


@pytest.mark.parametrize(
    ("greeting", "code"),
    [
        ("not json", 1003),
        ("[]", 1003),
        ('{"trace_id": "x"}', 1003),
        ('{"trace_id": "x", "have": "many"}', 1003),
        ('{"trace_id": "x", "have": Infinity}', 1003),
    ],
)
@pytest.mark.slow
def test_an_invalid_first_message_closes_only_its_websocket(
    page: Page, app_server: AppServer, greeting: str, code: int
) -> None:
    with page.expect_websocket(is_line, timeout=MODEL_MILLISECONDS) as line:
        live = LivePage(page, app_server.url).open()
    assert _close_code(page, line.value.url, greeting) == code
    live.add()
    live.step()


@pytest.mark.slow
def test_an_unknown_trace_id_is_refused(page: Page, app_server: AppServer) -> None:
    page.goto(app_server.url)
    assert _close_code(page, f"{app_server.url.replace('http', 'ws')}/api/frames/{'0' * 32}") == 1008


def _close_code(page: Page, url: str, greeting: str = '{"trace_id": "", "have": 0}', seconds: float = 30) -> int | None:
    """Greet the line and wait for its end: the code it closes with, or None when it stays open."""
    code: int | None = page.evaluate(
        """([url, greeting, seconds]) => new Promise(done => {
            const socket = new WebSocket(url);
            socket.onopen = () => socket.send(greeting);
            socket.onclose = event => done(event.code);
            setTimeout(() => { done(null); socket.close(); }, seconds * 1000);
        })""",
        [url, greeting, seconds],
    )
    return code
