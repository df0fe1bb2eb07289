"""An attendee's way through the app in Firefox and in WebKitGTK, Safari's engine: a lesson, then three live steps."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from course.block_table.lesson import LESSON as BLOCK_TABLE
from course.block_table.scene import block_table
from engine import Engine, SamplingParams
from engine.trace.usage import address_of
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import MODEL_MILLISECONDS
from tests.helpers.waiting import AT_REST, PATIENCE, until, until_equal
from tests.helpers.webdriver import OtherBrowser, firefox, webkit, why_no_firefox, why_no_webkit
from views.live.config import live_config

Open = Callable[[Path], AbstractContextManager[OtherBrowser]]
BROWSERS: dict[str, tuple[Open, Callable[[], str]]] = {
    "firefox": (firefox, why_no_firefox),
    "webkit": (webkit, why_no_webkit),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROWSERS)
def test_a_lesson_is_drawn_and_the_live_engine_makes_three_steps(
    name: str, app_server: AppServer, tmp_path: Path
) -> None:
    open_browser, why_not = BROWSERS[name]
    if reason := why_not():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    with open_browser(tmp_path) as browser:
        see_a_lesson(browser, app_server.url)
        step_the_live_engine(browser, app_server.url)


def see_a_lesson(browser: OtherBrowser, url: str) -> None:
    scene = block_table()
    piece = address_of(scene.at(scene.values[-1]), "A", 5).piece
    browser.go(f"{url}/{BLOCK_TABLE.url_path}?token=5")
    until_equal(lambda: browser.texts("[data-testid=stMain] h1"), [BLOCK_TABLE.title], MODEL_MILLISECONDS / 1000)
    until_equal(lambda: browser.texts(".tok.lit"), [piece])


def step_the_live_engine(browser: OtherBrowser, url: str) -> None:
    engine = Engine(live_config("tiny-random", 4, 40, True, "recompute"))
    engine.add_request("abcdef", SamplingParams(temperature=1.5, max_tokens=24, seed=5))
    browser.go(f"{url}/live_engine?prompt=abcdef&block_size=4&num_blocks=40&temperature=1.5&seed=5")
    press(browser, "add", MODEL_MILLISECONDS / 1000)
    until_equal(lambda: browser.texts("[data-request] strong"), ["Request A"])
    for step in (1, 2, 3):
        engine.step()
        press(browser, "step")
        until_equal(lambda: browser.texts("[data-figure=step]"), [str(step)])
    text = engine.output("A").outputs[0].text
    until_equal(lambda: browser.texts("[data-text=A]"), [text.strip()])
    until_equal(lambda: browser.texts(".st-key-memory_map .bar .label, .mm .bar .label"), ["Step 3"])


def press(browser: OtherBrowser, key: str, seconds: float = PATIENCE) -> None:
    """A button, once it can be pressed and the page is at rest."""
    button = f".st-key-{key} button:not(:disabled)"
    until(lambda: bool(browser.texts(button)) and bool(browser.texts(AT_REST)), seconds, f"the button {key}")
    browser.click(button)
