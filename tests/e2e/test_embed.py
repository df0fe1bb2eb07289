"""One picture in a frame of another site: alone, as tall as the frame, and only where a setting names the site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.growth.lesson import LESSON as GROWTH
from tests.helpers.app_server import ROOT, running_app, static_site
from tests.helpers.course_reader import CourseReader
from tests.helpers.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.every_case]
SNIPPET = (
    r'<iframe src="{app}/\?tokens=5&amp;figure={figure}&amp;embed=true" title="[^"]+" loading="lazy" '
    r'style="width: 100%; height: \d+px; border: 0"></iframe>'
)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A folder, and the origins of two servers of it."""
    folder = tmp_path_factory.mktemp("blog")
    with static_site(folder) as named, static_site(folder) as other:
        yield folder, named, other


def copied_snippet(page: Page, app: str, address: str, key: str) -> str:
    """What a page gives to copy below its map, read from the clipboard."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=app)
    embed = CourseReader(page, app).arrive(address).the_map(key).locator(".embed")
    embed.locator("summary").click()
    snippet = embed.get_by_label("HTML to embed it").input_value()
    embed.get_by_role("button", name="Copy").click()
    expect(embed.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == snippet
    page.keyboard.press("Escape")
    expect(embed.get_by_label("HTML to embed it")).to_be_hidden()
    return snippet


def test_a_picture_stands_alone_in_a_frame_of_the_site_that_is_named(
    sites: tuple[Path, str, str], context: BrowserContext, tmp_path: Path
) -> None:
    folder, named, other = sites
    settings = {"PAGED_KV_MODEL": "tiny-random", "PAGED_KV_FRAME_ANCESTORS": named}
    with running_app(ROOT / "app.py", tmp_path / "server.log", settings) as app:
        page = context.new_page()
        snippet = copied_snippet(page, app.url, f"{GROWTH.url_path}?tokens=5", f"map_{GROWTH.key}")
        assert re.fullmatch(SNIPPET.format(app=re.escape(app.url), figure=GROWTH.url_path), snippet)
        (folder / "post.html").write_text(f"<!DOCTYPE html><h1>A post</h1>{snippet}", "utf-8")

        page.goto(f"{named}/post.html")
        frame = page.frame_locator("iframe")
        expect(frame.locator(".mm svg.picture[viewBox]")).to_be_visible(timeout=60_000)
        expect(frame.locator(".mm input[type=range]")).to_have_value("5")
        for rest in (".embed", "h1", "[data-testid=stSidebar]", "[data-testid=stHeader]", ".st-key-lesson_notes"):
            expect(frame.locator(rest)).to_be_hidden()
        main = frame.locator("[data-testid=stMain]")
        until(lambda: main.evaluate("node => node.scrollHeight <= node.clientHeight + 1"), what="all of it is in view")
        frame.locator(".mm input[type=range]").press("ArrowRight")
        expect(frame.locator(".mm input[type=range]")).to_have_value("6")

        refused = context.new_page()
        with refused.expect_console_message(lambda message: "frame-ancestors" in message.text):
            refused.goto(f"{other}/post.html")
        expect(refused.frame_locator("iframe").locator(".mm")).to_have_count(0)


def test_a_live_engine_runs_in_a_frame_and_every_visitor_has_one_of_their_own(
    sites: tuple[Path, str, str], context: BrowserContext, tmp_path: Path
) -> None:
    folder, named, _other = sites
    settings = {"PAGED_KV_MODEL": "tiny-random", "PAGED_KV_FRAME_ANCESTORS": named}
    with running_app(ROOT / "app.py", tmp_path / "server.log", settings) as app:
        page = context.new_page()
        snippet = copied_snippet(page, app.url, "live_engine", "memory_map")
        assert "figure=live_engine" in snippet and "engine=" not in snippet.replace("figure=live_engine", "")
        (folder / "live.html").write_text(f"<!DOCTYPE html>{snippet}", "utf-8")
        page.goto(f"{named}/live.html")
        frame = page.frame_locator("iframe")
        expect(frame.locator(".mm svg.picture[viewBox]")).to_be_visible(timeout=60_000)
        frame.locator(".st-key-add button").click()
        expect(frame.locator(".mm .lanes")).to_be_attached()
        frame.locator(".st-key-step button").click()
        expect(frame.locator(".mm .bar .label")).to_have_text("Step 1")
        main = frame.locator("[data-testid=stMain]")
        until(lambda: main.evaluate("node => node.scrollHeight <= node.clientHeight + 1"), what="all of it is in view")
