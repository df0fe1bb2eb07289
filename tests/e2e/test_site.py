"""The static site, from `python -m http.server`: every page plays without our server, is small and accessible."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from course.pages import LESSONS
from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import ROOT, static_site
from tests.helpers.page_watch import PageWatch
from tests.helpers.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.every_case]
LARGEST_BYTES = 300_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site", str(folder), "--live", "https://live.example/kv/"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    """Its address."""
    with static_site(folder) as address:
        yield address


def test_there_is_a_small_page_for_each_lesson_and_an_index_that_names_them(folder: Path) -> None:
    pages = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    assert set(pages) == {"index.html", *(f"{lesson.url_path}.html" for lesson in LESSONS)}
    assert {name for name, text in pages.items() if len(text.encode()) > LARGEST_BYTES} == set()
    for lesson in LESSONS:
        assert f'href="{lesson.url_path}.html"' in pages["index.html"]
        page = pages[f"{lesson.url_path}.html"]
        assert f"<title>{lesson.title}</title>" in page
        assert f'href="https://live.example/kv/{lesson.url_path}"' in page


def test_every_page_plays_by_itself_is_accessible_and_leads_to_the_next(site: str, context: BrowserContext) -> None:
    page = context.new_page()
    watch = PageWatch(page)
    page.goto(f"{site}/index.html")
    expect_no_violations(page)
    page.get_by_role("link", name=LESSONS[0].title).click()
    for number, lesson in enumerate(LESSONS):
        expect(page.locator("h1")).to_have_text(lesson.title)
        until(lambda: page.locator(".mm svg.picture[viewBox]").count() == page.locator(".map").count(), what="all maps")
        slider = page.locator(".mm input[type=range]").first
        slider.focus()
        page.keyboard.press("Home")
        expect(slider).to_have_value("0")
        first = page.locator(".mm .caption").first.inner_text()
        page.keyboard.press("End")
        expect(page.locator(".mm .caption").first).not_to_have_text(first)
        expect_no_violations(page)
        if number + 1 < len(LESSONS):
            page.get_by_role("link", name=f"Next: {LESSONS[number + 1].title}").first.click()
    watch.check()
