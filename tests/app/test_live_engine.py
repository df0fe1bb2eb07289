"""The live page without a browser: its numbers are those of an engine run beside it, its limits hold."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine import Engine, EngineConfig, SamplingParams
from engine.usage import block_table_of, usage_of
from tests.app.conftest import LIVE_ENGINE, OpenPage
from tests.helpers.app_html import all_html, figure, sentences, table_rows
from tests.helpers.waiting import until
from views import server
from views.frames_route import path_of
from views.live_config import MAX_NUM_SEQS, MAX_SLOTS


def press(app: AppTest, key: str) -> AppTest:
    return app.button(key=key).click().run()


def test_every_number_on_the_page_is_a_field_of_the_engines_own_state(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abcdefg", block_size="3", num_blocks="30", samples="2", seed="5")
    press(app, "add")
    for _ in range(4):
        press(app, "step")

    config = EngineConfig(
        model="tiny-random", block_size=3, num_blocks=30, max_num_seqs=MAX_NUM_SEQS, max_model_len=MAX_SLOTS
    )
    engine = Engine(config)
    engine.add_request("abcdefg", SamplingParams(temperature=0.7, max_tokens=24, n=2, seed=5))
    for _ in range(4):
        engine.step()
    state = engine.snapshot()
    usage = usage_of(state)
    assert {key: figure(app, key) for key in ("step", "used", "cached", "free", "written", "copies_avoided")} == {
        "step": "4",
        "used": str(usage.num_used_blocks),
        "cached": str(usage.num_cached_blocks),
        "free": str(usage.num_free_blocks),
        "written": f"{usage.num_written_slots} of {usage.num_held_slots}",
        "copies_avoided": str(usage.num_copies_avoided),
    }
    for seq_id in ("A", "A#1"):
        assert table_rows(app, seq_id) == [
            [
                str(entry.logical_index),
                str(entry.block_id),
                f"{entry.first_slot} to {entry.last_slot}",
                f"{entry.num_written} of {config.block_size}",
                str(entry.ref_cnt),
            ]
            for entry in block_table_of(state, seq_id)
        ]


def component(app: AppTest, part: str) -> Any:
    """What a component of the page was given; `part` is a name in its data."""
    [data] = [data for element in app.get("bidi_component") if part in (data := json.loads(element.proto.json))]
    return data[part]


def test_a_rerun_sends_the_map_no_frames_only_where_to_get_them(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abc")
    press(press(press(app, "add"), "step"), "step")
    payload, path = component(app, "payload"), component(app, "live")
    assert (payload["frames"], payload["is_open"]) == ([], True)
    session = server.open_sessions().find(payload["trace_id"])
    assert session is not None
    assert path == path_of(session)
    messages = [json.loads(text) for text in session.frames.texts]
    assert [frame["step"] for frame in messages if not frame.get("amend")] == [0, 1, 2]


def test_reset_starts_a_new_engine(open_page: OpenPage) -> None:
    app = press(press(press(open_page(LIVE_ENGINE, prompt="abc"), "add"), "step"), "reset")
    assert (figure(app, "step"), figure(app, "used")) == ("0", "0")
    assert "data-request" not in all_html(app)


def test_a_request_that_does_not_run_yet_cannot_be_forked_and_the_page_says_so(open_page: OpenPage) -> None:
    app = press(press(open_page(LIVE_ENGINE, prompt="abc"), "add"), "fork")
    assert "Only a running request with one sequence can be forked; 'A' is not." in sentences(app)
    press(press(app, "step"), "fork")
    assert 'data-request="B" data-status="running"' in all_html(app)


def test_a_run_that_was_reset_can_be_brought_back_step_by_step(open_page: OpenPage) -> None:
    app = press(press(press(open_page(LIVE_ENGINE, prompt="abc", seed="3"), "add"), "step"), "step")
    told = re.findall(r'data-text="A">(.*?)</span>', all_html(app))
    press(press(app, "reset"), "bring_back")
    until(lambda: figure(app.run(), "step") == "2" and not app.get("progress"))
    assert re.findall(r'data-text="A">(.*?)</span>', all_html(app)) == told
    assert "bring_back" not in [button.key for button in app.button]


def test_beams_that_died_stand_last_and_are_called_dead(open_page: OpenPage) -> None:
    app = press(open_page(LIVE_ENGINE, prompt="abc", beams="3", stop_at_end="false"), "add")
    for _ in range(4):
        press(app, "step")
    lines = re.findall(r'data-text="(A[^"]*)">[^<]*</span>( \(this beam died\))?', all_html(app))
    dead = [bool(mark) for _, mark in lines]
    assert any(dead) and dead == sorted(dead) and dead.count(False) == 3


def test_before_the_first_request_a_new_setting_applies_at_once(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE)
    app.number_input(key="num_blocks").set_value(11).run()
    assert figure(app, "free") == "11"
    assert not [sentence for sentence in sentences(app) if "Reset" in sentence]


def test_after_it_the_page_says_that_reset_is_needed(open_page: OpenPage) -> None:
    app = press(open_page(LIVE_ENGINE, prompt="abc"), "add")
    app.number_input(key="num_blocks").set_value(11).run()
    assert figure(app, "free") == "32"
    assert "The new engine settings apply after Reset, which drops the requests there are." in sentences(app)


def test_a_request_larger_than_the_pool_is_refused_with_the_limits_named(open_page: OpenPage) -> None:
    app = press(open_page(LIVE_ENGINE, prompt="abcdefgh", block_size="2", num_blocks="5"), "add")
    assert sentences(app)[0].startswith("It may need 16 blocks of 2; the pool has 5.")
    assert 'data-request="A" data-status="refused"' in all_html(app)


def test_a_pool_too_large_for_a_tab_is_made_smaller_and_said_so(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, block_size="256", num_blocks="100")
    assert figure(app, "free") == "16"
    assert "A tab's pool has at most 4096 slots, so it gets 16 blocks of 256." in sentences(app)


@pytest.mark.parametrize(
    ("key", "raw", "value", "sentence"),
    [
        ("num_blocks", "1e9", 512, "Blocks is a whole number from 1 to 512: '1e9' became 512."),
        ("num_blocks", "7.5", 8, "Blocks is a whole number from 1 to 512: '7.5' became 8."),
        ("samples", "-1", 1, "Samples is a whole number from 1 to 8: '-1' became 1."),
        ("seed", "NaN", 0, "Seed: 'NaN' in the address is not a number, so it is 0."),
        ("max_tokens", "inf", 24, "New tokens at most: 'inf' in the address is not a number, so it is 24."),
        ("block_size", "<b>", 4, "Block size: '<b>' in the address is not a number, so it is 4."),
    ],
)
def test_bad_numbers_in_the_address_are_corrected_and_said_so(
    open_page: OpenPage, key: str, raw: str, value: int, sentence: str
) -> None:
    app = open_page(LIVE_ENGINE, **{key: raw})
    assert app.number_input(key=key).value == value
    assert sentence in sentences(app)


def test_other_bad_values_in_the_address_are_corrected_and_said_so(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, temperature="99", model="no-such-model", prompt="x" * 3000)
    assert app.slider(key="temperature").value == 2.0
    assert app.selectbox(key="model").value == "tiny-random"
    assert len(app.text_area(key="prompt").value) == 2000
    assert sentences(app)[:3] == [
        "The prompt: the address held 3000 characters; 2000 are kept.",
        "Model: 'no-such-model' in the address is not known here, so it is tiny-random.",
        "Temperature goes from 0.0 to 2.0: '99' became 2.0.",
    ]


def test_good_values_in_the_address_are_taken_without_a_word(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, temperature="0.3", block_size="7", prompt="hello", chat="true", model="tiny-random")
    assert (app.slider(key="temperature").value, app.number_input(key="block_size").value) == (0.3, 7)
    assert app.toggle(key="chat").value is True
    assert sentences(app) == ["Add a request, then press Step: the model reads the prompt and its block table fills."]

