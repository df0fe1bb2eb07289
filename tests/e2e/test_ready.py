"""The doctor asked from the browser, for real."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from course.pages import READY
from tests.helpers.app_server import AppServer
from tests.helpers.waiting import until_equal


@pytest.mark.slow
def test_the_machine_that_runs_these_tests_is_ready(page: Page, app_server: AppServer) -> None:
    page.goto(f"{app_server.url}/{READY.url_path}")
    page.get_by_role("button", name="Check this machine").click()
    expect(page.get_by_text("This machine is ready.")).to_be_visible(timeout=180_000)
    rows = page.locator("[data-check]")
    until_equal(lambda: set(rows.evaluate_all("rows => rows.map(row => row.dataset.ready)")), {"true"})
    expect(page.locator("[data-check='Backend']")).to_contain_text("cpu on cpu")
    expect(page.get_by_text(re.compile(r"Checked at \d\d:\d\d, in \d+\.\d s"))).to_be_visible()
