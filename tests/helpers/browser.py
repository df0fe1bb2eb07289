"""The Chromium that tests drive."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import Browser, Playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def launched(playwright: Playwright, *flags: str) -> Browser:
    """A Chromium with these flags besides those that every test has."""
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if executable is None:
        reason = "No chromium on this machine; install it, or name it in the environment variable CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return playwright.chromium.launch(executable_path=executable, args=[*FLAGS, *flags])
