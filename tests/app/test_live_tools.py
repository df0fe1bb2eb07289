"""The live page's tools in every state of a run: none of them breaks, and each says what it cannot show."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.conftest import LIVE_ENGINE, OpenPage
from tests.helpers.app_html import all_html, figure, sentences
from views.live.kernels_eye import NOTHING
from views.live.prefix_cache import NO_QUERY, NOTHING_CACHED, OFF
from views.live.sharing_history import NOTHING_YET
from views.live.tools import TOOLS


def press(app: AppTest, key: str) -> AppTest:
    return app.button(key=key).click().run()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_draws_itself_before_during_and_after_a_run(open_page: OpenPage, tool: str) -> None:
    app = open_page(LIVE_ENGINE, prompt="abcdef", samples="2", max_tokens="4", tool=tool)
    assert not app.exception
    press(app, "add")
    assert not app.exception
    for _ in range(4):
        press(app, "step")
        assert not app.exception
    assert figure(app, "used") == "0", "the run is over"


def test_a_tool_without_data_says_what_is_missing(open_page: OpenPage) -> None:
    assert NOTHING in sentences(open_page(LIVE_ENGINE, tool="Kernel's eye"))
    assert NOTHING_YET in sentences(open_page(LIVE_ENGINE, tool="Forks and copies"))
    assert "Nothing has happened yet. Add a request and press Step a few times." in sentences(
        open_page(LIVE_ENGINE, tool="Time travel")
    )


def test_the_prefix_cache_shows_hits_hashes_and_what_is_evicted_next(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abcdefghij", max_tokens="1", num_blocks="8", tool="Prefix cache")
    assert sentences(app)[-2:] == [NOTHING_CACHED, NO_QUERY]
    press(press(app, "add"), "step")
    press(press(app, "add"), "step")
    shown = all_html(app)
    assert re.findall(r'data-outcome="([\w ]+)"', shown) == ["hit", "hit", "not full"]
    queued = re.findall(r'<li data-block="(\d+)"( data-evicted-next)?', shown)
    assert queued[-2:] == [("1", " data-evicted-next"), ("0", "")]
    assert "Evicted next: block 1, after the 6 free blocks before it are taken." in shown
    first, second = re.findall(r"<td><code>(\w+)</code></td><td>(?:<span.*?</span>)+</td><td><code>(\w+)</code>", shown)
    assert (first[0], second[0]) == ("none", first[1])


def test_the_prefix_cache_tool_without_a_prefix_cache(open_page: OpenPage) -> None:
    assert OFF in sentences(open_page(LIVE_ENGINE, prefix_caching="false", tool="Prefix cache"))


def test_a_slot_is_clamped_when_the_pool_is_smaller(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abc", num_blocks="32", tool="Slot microscope")
    app.number_input(key="slot").set_value(127).run()
    assert figure(app, "view.block_id") == "31"
    app.number_input(key="num_blocks").set_value(4).run()
    assert (figure(app, "view.slot"), figure(app, "view.block_id")) == ("15", "3")


def test_old_content_of_a_freed_block_is_marked(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="ab", max_tokens="2", prefix_caching="false", tool="Slot microscope")
    press(press(press(app, "add"), "step"), "step")
    assert (
        "No block table points here now. The values are left over from A until the slot is written again."
        in sentences(app)
    )
    assert 'data-piece><span class="pv-piece" dir="auto">a</span></span> (id ' in all_html(app)
