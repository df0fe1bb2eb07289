"""A real browser against a real server. A page that logs an error, or asks any other machine for anything, fails."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.helpers.app_server import ROOT, AppServer, running_app
from tests.helpers.browser import launched
from tests.helpers.map_page import MAPS_APP
from tests.helpers.page_watch import PageWatch
from tests.helpers.waiting import PATIENCE

ARTIFACTS = Path(__file__).parent / "artifacts"
FAILED = pytest.StashKey[bool]()
expect.set_options(timeout=PATIENCE * 1000)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser test with many cases runs the first one by default, unless it says `every_case`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("every_case") is None:
                item.add_marker(pytest.mark.first_case)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the `page` fixture see whether the test it served has failed."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = launched(playwright)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def app_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The app on the tiny model, for what does not depend on the words."""
    log_file = tmp_path_factory.mktemp("app_server") / "server.log"
    with running_app(ROOT / "app.py", log_file, {"PAGED_KV_MODEL": "tiny-random"}) as server:
        yield server


@pytest.fixture(scope="session")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """A page with nothing but memory maps."""
    log_file = tmp_path_factory.mktemp("maps") / "server.log"
    with running_app(MAPS_APP, log_file, {"PYTHONPATH": str(ROOT)}) as server:
        yield server


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The app on the embedded model, for what depends on real keys, values and words."""
    with running_app(ROOT / "app.py", tmp_path_factory.mktemp("embedded") / "server.log") as server:
        yield server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of its own: nothing of another test's is in it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A watched tab. What it logged and asked for is judged when the test ends."""
    page = context.new_page()
    watch = PageWatch(page)
    yield page
    if watch.complaints or request.node.stash.get(FAILED, False):
        _keep_screenshot(page, request.node.name)
    watch.check()


def _keep_screenshot(page: Page, test_name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{re.sub(r'[^A-Za-z0-9_-]+', '_', test_name)[:80]}.png")
