"""Wait for something, asking from Python: the policy of our pages forbids a browser to evaluate text itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page

PATIENCE = 30.0
"""Seconds to wait for what a busy machine does late. It costs nothing when all is well."""
POLL_SECONDS = 0.02
HELD = "[data-testid=stMain][inert]"
"""The page takes no key and no click: the server does not know it yet."""
AT_REST = (
    "[data-testid=stApp][data-test-connection-state=CONNECTED][data-test-script-state=notRunning]"
    f":not(:has([data-testid=stSkeleton], {HELD}))"
)
"""Without a connection, a dialog of Streamlit's may take the next key. A skeleton stands for a widget whose code is
still loading, and has not its height."""


def until(condition: Callable[[], bool], seconds: float = PATIENCE, what: str = "it") -> None:
    """Not for `page.url`, which Playwright brings up to date only while it is asked for something: `wait_for_url`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} seconds"
        time.sleep(POLL_SECONDS)


def until_equal(read: Callable[[], object], wanted: object, seconds: float = PATIENCE) -> None:
    """Until `read` gives what is wanted; fails with what it gave at last."""
    deadline = time.monotonic() + seconds
    while (seen := read()) != wanted:
        assert time.monotonic() < deadline, f"after {seconds} seconds\nwanted: {wanted!r}\nseen:   {seen!r}"
        time.sleep(POLL_SECONDS)


def until_page(page: Page, expression: str, seconds: float = PATIENCE) -> None:
    """Until the expression is true in the page. (`wait_for_function` would evaluate it there.)"""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"it did not come to pass: {expression}"
        page.wait_for_timeout(1000 * POLL_SECONDS)


def until_at_rest(page: Page) -> None:
    """Until the script that an action started has come to its end.

    The browser hears of the script's start a moment after the action, so this says little on a busy machine, and
    components paint after it: what a test claims to see it waits for by itself.
    """
    page.wait_for_timeout(150)
    page.wait_for_selector(AT_REST, timeout=PATIENCE * 1000)
