"""What the live page's tools look at comes from the address and goes into it; out of range is corrected and said."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.conftest import LIVE_ENGINE, OpenPage
from tests.helpers.app_html import figure, sentences
from views.live.tool_settings import NAMES

MICROSCOPE, EYE = "Slot microscope", "Kernel's eye"


def in_address(app: AppTest) -> dict[str, str]:
    """What the page puts into its address for the tools."""
    sent = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    [values] = [data["values"] for data in sent if "session" in data and set(NAMES) <= set(data.get("values", ()))]
    return {name: values[name] for name in NAMES if values[name] is not None}


def press(app: AppTest, *keys: str) -> AppTest:
    for key in keys:
        app.button(key=key).click().run()
    return app


def test_the_slot_microscope_opens_at_the_slot_in_the_url(open_page: OpenPage) -> None:
    place = {"slot": "5", "layer": "1", "kv_head": "1"}
    app = open_page(LIVE_ENGINE, tool=MICROSCOPE, block_size="4", **place)
    assert (figure(app, "view.slot"), figure(app, "view.block_id"), figure(app, "view.offset")) == ("5", "1", "1")
    assert [app.number_input(key=key).value for key in place] == [5, 1, 1]
    assert in_address(app) == place
    assert not [sentence for sentence in sentences(app) if "address" in sentence or "whole number" in sentence]


def test_tool_settings_are_in_the_url_while_the_tool_is_shown(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abcdef", tool=MICROSCOPE)
    press(app, "add", "step")
    app.number_input(key="slot").set_value(3).run()
    assert in_address(app) == {"slot": "3", "layer": "0", "kv_head": "0"}
    app.button_group(key="tool").set_value(EYE).run()
    assert in_address(app) == {"sequence": "A", "token": "5", "layer": "0", "head": "0", "beat": "1"}
    app.button_group(key="tool").set_value("Block tables").run()
    assert in_address(app) == {}
    app.button_group(key="tool").set_value(MICROSCOPE).run()
    assert app.number_input(key="slot").value == 3, "kept while another tool was shown"


@pytest.mark.parametrize(
    ("asked", "became", "sentence"),
    [
        ({"slot": "999"}, 127, "Slot must be a whole number from 0 to 127: '999' was changed to 127."),
        ({"layer": "-3"}, 0, "Layer must be a whole number from 0 to 1: '-3' was changed to 0."),
        ({"kv_head": "one"}, 0, "KV head: 'one' in the address is not a number, so it was set to 0."),
    ],
)
def test_a_location_out_of_range_is_clamped_with_a_note(
    open_page: OpenPage, asked: dict[str, str], became: int, sentence: str
) -> None:
    app = open_page(LIVE_ENGINE, tool=MICROSCOPE, block_size="4", num_blocks="32", **asked)
    [name] = asked
    assert app.number_input(key=name).value == became
    assert sentence in sentences(app)
    assert in_address(app)[name] == str(became)
    app.number_input(key=name).set_value(1).run()
    assert sentence not in sentences(app), "the reader has chosen another one since"


def test_the_kernel_view_reports_bad_values_in_the_url(open_page: OpenPage) -> None:
    asked = {"sequence": "<b>", "token": "77", "head": "2", "beat": "9"}
    app = open_page(LIVE_ENGINE, tool=EYE, prompt="abcdef", block_size="4", **asked)
    assert in_address(app) == asked, "nothing to choose from yet: the address stays as it is"
    press(app, "add", "step")
    assert in_address(app) == {"sequence": "A", "token": "5", "layer": "0", "head": "2", "beat": "3"}
    assert {sentence for sentence in sentences(app) if "address" in sentence or "was changed" in sentence} == {
        "Sequence: '<b>' in the address is not one of the choices, so it was set to A.",
        "Query token must be a whole number from 0 to 5: '77' was changed to 5.",
        "Block must be a whole number from 1 to 3: '9' was changed to 3.",
    }
