"""One picture in a frame of another site: alone, as tall as the frame, and only where a setting names the site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.growth.lesson import LESSON as GROWTH
from tests.helpers.app_server import ROOT, running_app, static_site
from tests.helpers.course_reader import CourseReader
from tests.helpers.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.every_case]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A folder, and the origins of two servers of it."""
    folder = tmp_path_factory.mktemp("blog")
    with static_site(folder) as named, static_site(folder) as other:
        yield folder, named, other


def saved_snippet(page: Page, app: str) -> str:
    """What the lesson's page gives to copy."""
    reader = CourseReader(page, app).arrive(f"{GROWTH.url_path}?tokens=5")
    the_map = reader.the_map(f"map_{GROWTH.key}")
    the_map.locator(".exports summary").click()
    with page.expect_download() as download:
        the_map.locator(".exports .menu button", has_text="HTML to embed it").click()
    return download.value.path().read_text("utf-8")


def test_a_picture_stands_alone_in_a_frame_of_the_site_that_is_named(
    sites: tuple[Path, str, str], context: BrowserContext, tmp_path: Path
) -> None:
    folder, named, other = sites
    settings = {"PAGED_KV_MODEL": "tiny-random", "PAGED_KV_FRAME_ANCESTORS": named}
    with running_app(ROOT / "app.py", tmp_path / "server.log", settings) as app:
        page = context.new_page()
        snippet = saved_snippet(page, app.url)
        assert f"figure={GROWTH.url_path}" in snippet and "PAGED_KV_FRAME_ANCESTORS" in snippet
        (folder / "post.html").write_text(f"<!DOCTYPE html><h1>A post</h1>{snippet}", "utf-8")

        page.goto(f"{named}/post.html")
        frame = page.frame_locator("iframe")
        expect(frame.locator(".mm svg.picture[viewBox]")).to_be_visible(timeout=60_000)
        expect(frame.locator(".mm input[type=range]")).to_have_value("5")
        for rest in ("h1", "[data-testid=stSidebar]", "[data-testid=stHeader]", ".st-key-lesson_notes"):
            expect(frame.locator(rest)).to_be_hidden()
        main = frame.locator("[data-testid=stMain]")
        until(lambda: main.evaluate("node => node.scrollHeight <= node.clientHeight + 1"), what="all of it is in view")
        frame.locator(".mm input[type=range]").press("ArrowRight")
        expect(frame.locator(".mm input[type=range]")).to_have_value("6")

        refused = context.new_page()
        with refused.expect_console_message(lambda message: "frame-ancestors" in message.text):
            refused.goto(f"{other}/post.html")
        expect(refused.frame_locator("iframe").locator(".mm")).to_have_count(0)
