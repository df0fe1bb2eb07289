"""Wait for something, asking from Python: the policy of our pages forbids a browser to evaluate text itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page

SECONDS_BETWEEN_LOOKS = 0.02


def until(condition: Callable[[], bool], seconds: float = 10.0, what: str = "it") -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} seconds"
        time.sleep(SECONDS_BETWEEN_LOOKS)


def until_page(page: Page, expression: str, seconds: float = 10.0) -> None:
    """Until the expression is true in the page. (`wait_for_function` would evaluate it there.)"""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"it did not come to pass: {expression}"
        page.wait_for_timeout(1000 * SECONDS_BETWEEN_LOOKS)
