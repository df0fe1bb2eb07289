"""The live page's tools in every state of a run: none of them breaks, and each says what it cannot show."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.conftest import LIVE_ENGINE, OpenPage
from tests.helpers.app_html import all_html, figure, sentences
from views.lab_kernels_eye import NOTHING
from views.lab_sharing import NOTHING_YET
from views.live_tools import TOOLS


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


def test_what_cannot_be_shown_yet_is_said(open_page: OpenPage) -> None:
    assert NOTHING in sentences(open_page(LIVE_ENGINE, tool="Kernel's eye"))
    assert NOTHING_YET in sentences(open_page(LIVE_ENGINE, tool="Forks and copies"))
    assert "Nothing has happened yet. Add a request and press Step a few times." in sentences(
        open_page(LIVE_ENGINE, tool="Time travel")
    )


def test_a_slot_out_of_range_is_brought_into_it_when_the_pool_is_smaller(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abc", num_blocks="32", tool="Slot microscope")
    app.number_input(key="slot").set_value(127).run()
    assert figure(app, "view.block_id") == "31"
    app.number_input(key="num_blocks").set_value(4).run()
    assert (figure(app, "view.slot"), figure(app, "view.block_id")) == ("15", "3")


def test_old_content_of_a_freed_block_is_called_leftovers(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="ab", max_tokens="2", prefix_caching="false", tool="Slot microscope")
    press(press(press(app, "add"), "step"), "step")
    assert "No block table leads here now. The numbers are leftovers of A, until somebody writes." in sentences(app)
    assert 'data-piece>a</span> (id ' in all_html(app)
