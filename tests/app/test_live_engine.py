"""The live page without a browser: its numbers are those of an engine run beside it, its limits hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine import Engine, EngineConfig, SamplingParams
from engine.trace.usage import block_table_of, usage_of
from tests.app.conftest import LIVE_ENGINE, OpenPage
from tests.helpers.app_html import all_html, figure, sentences, table_rows
from tests.helpers.waiting import until
from views.live.config import MAX_NUM_SEQS, MAX_SLOTS, live_config
from views.live.panel import NOTHING_YET
from views.live.recipe import Recipe
from views.server.commands import AddRequest
from views.server.engine_session import EngineSession
from views.server.frames_route import frames_path
from views.server.sessions import session_registry


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


def test_a_rerun_sends_the_map_a_path_and_no_frames(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abc")
    press(press(press(app, "add"), "step"), "step")
    payload, path = component(app, "payload"), component(app, "live")
    assert (payload["frames"], payload["is_open"]) == ([], True)
    session = session_registry().find(payload["trace_id"])
    assert session is not None
    assert path == frames_path(session)
    messages = [json.loads(text) for text in session.frames.texts]
    assert [frame["step"] for frame in messages if not frame.get("amend")] == [0, 1, 2]


def test_reset_starts_a_new_engine(open_page: OpenPage) -> None:
    app = press(press(press(open_page(LIVE_ENGINE, prompt="abc"), "add"), "step"), "reset")
    assert (figure(app, "step"), figure(app, "used")) == ("0", "0")
    assert "data-request" not in all_html(app)


def test_forking_a_waiting_request_is_refused_with_a_reason(open_page: OpenPage) -> None:
    app = press(press(open_page(LIVE_ENGINE, prompt="abc"), "add"), "fork")
    assert "Only a running request with one sequence can be forked; 'A' is not." in sentences(app)
    press(press(app, "step"), "fork")
    assert 'data-request="B" data-status="running"' in all_html(app)


def test_a_run_that_was_reset_can_be_replayed_step_by_step(open_page: OpenPage) -> None:
    app = press(press(press(open_page(LIVE_ENGINE, prompt="abc", seed="3"), "add"), "step"), "step")
    told = re.findall(r'data-text="A">(.*?)</span>', all_html(app))
    press(press(app, "reset"), "restore_run")
    until(lambda: figure(app.run(), "step") == "2" and not app.get("progress"))
    assert re.findall(r'data-text="A">(.*?)</span>', all_html(app)) == told
    assert "restore_run" not in [button.key for button in app.button]


def test_pruned_beams_are_listed_last_and_named(open_page: OpenPage) -> None:
    app = press(open_page(LIVE_ENGINE, prompt="abc", beams="3", stop_at_end="false"), "add")
    for _ in range(4):
        press(app, "step")
    lines = re.findall(r'data-text="(A[^"]*)">[^<]*</span>( \(this beam was pruned\))?', all_html(app))
    dead = [bool(mark) for _, mark in lines]
    assert any(dead) and dead == sorted(dead) and dead.count(False) == 3


def test_before_the_first_request_a_new_setting_applies_at_once(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE)
    app.number_input(key="num_blocks").set_value(11).run()
    assert figure(app, "free") == "11"
    assert not [sentence for sentence in sentences(app) if "Reset" in sentence]


def test_after_it_the_page_asks_for_a_reset(open_page: OpenPage) -> None:
    app = press(open_page(LIVE_ENGINE, prompt="abc"), "add")
    app.number_input(key="num_blocks").set_value(11).run()
    assert figure(app, "free") == "32"
    assert "The new engine settings apply after Reset, which drops the requests there are." in sentences(app)


def test_a_request_larger_than_the_pool_is_refused_with_the_limits_named(open_page: OpenPage) -> None:
    app = press(open_page(LIVE_ENGINE, prompt="abcdefgh", block_size="2", num_blocks="5"), "add")
    assert sentences(app)[0].startswith("It may need 16 blocks of 2; the pool has 5.")
    assert 'data-request="A" data-status="refused"' in all_html(app)


def test_a_pool_too_large_for_a_tab_is_reduced_with_a_note(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, block_size="256", num_blocks="100")
    assert figure(app, "free") == "16"
    assert "A tab's pool has at most 4096 slots, so it gets 16 blocks of 256." in sentences(app)


@pytest.mark.parametrize(
    ("key", "raw", "value", "sentence"),
    [
        ("num_blocks", "1e9", 512, "Blocks must be a whole number from 1 to 512: '1e9' was changed to 512."),
        ("num_blocks", "7.5", 8, "Blocks must be a whole number from 1 to 512: '7.5' was changed to 8."),
        ("samples", "-1", 1, "Samples must be a whole number from 1 to 8: '-1' was changed to 1."),
        ("seed", "NaN", 0, "Seed: 'NaN' in the address is not a number, so it was set to 0."),
        ("max_tokens", "inf", 24, "New tokens at most: 'inf' in the address is not a number, so it was set to 24."),
        ("block_size", "<b>", 4, "Block size: '<b>' in the address is not a number, so it was set to 4."),
    ],
)
def test_bad_numbers_in_the_url_are_corrected_with_a_note(
    open_page: OpenPage, key: str, raw: str, value: int, sentence: str
) -> None:
    app = open_page(LIVE_ENGINE, **{key: raw})
    assert app.number_input(key=key).value == value
    assert sentence in sentences(app)


def test_other_bad_values_in_the_url_are_corrected_with_a_note(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, temperature="99", model="no-such-model", prompt="x" * 3000)
    assert app.slider(key="temperature").value == 2.0
    assert app.selectbox(key="model").value == "tiny-random"
    assert len(app.text_area(key="prompt").value or "") == 2000
    assert sentences(app)[:3] == [
        "The prompt: the text had 3000 characters; the limit is 2000, so the rest was cut off.",
        "Model: 'no-such-model' in the address is not one of the choices, so it was set to tiny-random.",
        "Temperature must be from 0.0 to 2.0: '99' was changed to 2.0.",
    ]


def test_a_link_of_an_earlier_version_opens_what_it_did(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, make_room="Compute again", tool="Take it away")
    assert app.selectbox(key="make_room").value == "Recompute"
    assert app.button_group(key="tool").value == "Download"
    assert not [sentence for sentence in sentences(app) if "in the address" in sentence]


def test_a_paste_over_the_limit_is_truncated_with_a_note_and_the_rest_runs(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, block_size="16", num_blocks="200")
    assert "24 of 2,000 characters" in all_html(app)
    app.text_area(key="prompt").set_value("y" * 2_431).run()
    assert app.text_area(key="prompt").value == "y" * 2_000
    assert "2,000 of 2,000 characters" in all_html(app)
    assert sentences(app)[0] == "The prompt: the text had 2431 characters; the limit is 2000, so the rest was cut off."
    app.button(key="add").click().run()
    assert f">{'y' * 2_000}</span>" in all_html(app)
    app.text_area(key="prompt").set_value("short").run()
    assert not any("cut off" in sentence for sentence in sentences(app))


def test_valid_values_in_the_url_are_taken_without_a_note(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, temperature="0.3", block_size="7", prompt="hello", chat="true", model="tiny-random")
    assert (app.slider(key="temperature").value, app.number_input(key="block_size").value) == (0.3, 7)
    assert app.toggle(key="chat").value is True
    assert sentences(app) == ["Add a request, then press Step: the model reads the prompt and its block table fills."]


@pytest.mark.parametrize("goal", [None, 9])
@pytest.mark.parametrize("problem", ["", "Step 3 failed, so this engine has stopped. Press Reset to start a new one."])
@pytest.mark.parametrize("has_request", [False, True])
def test_the_panel_has_a_fixed_number_of_elements(
    goal: int | None, problem: str, has_request: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An element more at one moment could stay for good: the browser forgets it only when a later run clears it."""
    session = EngineSession(Engine(EngineConfig(model="tiny-random", block_size=4, num_blocks=8)))
    if has_request:
        session.add("abc", SamplingParams(), as_chat=False)
    monkeypatch.setattr(
        EngineSession, "moment", property(lambda it: replace(it._published, problem=problem, replay_until=goal))
    )

    def draw(session) -> None:  # type: ignore[no-untyped-def]  # run where this module is not known
        from views.live.panel import _draw_words

        _draw_words(session, False)

    app = AppTest.from_function(draw, kwargs={"session": session}).run()
    assert [element.type for element in app.main.children.values()] == ["progress" if goal else "empty", "html"]
    assert len(app.get("progress")) == (goal is not None)
    assert sentences(app) == ([problem] if problem else []) + ([] if has_request else [NOTHING_YET])


def test_a_link_to_a_run_replaces_the_run_of_a_tab(open_page: OpenPage) -> None:
    app = press(press(open_page(LIVE_ENGINE, prompt="abc"), "add"), "step")
    assert re.findall(r'data-request="(\w+)"', all_html(app)) == ["A"]
    config = live_config("tiny-random", block_size=4, num_blocks=9, prefix_caching=True, preemption="recompute")
    params = SamplingParams(temperature=0.0, max_tokens=3, seed=0, ignore_eos=True)
    run = Recipe(config, (AddRequest(0, "linked", params), AddRequest(0, "too", params)), 0).to_text()
    assert run is not None
    app.switch_page("pages/home.py").run()
    app.switch_page(LIVE_ENGINE)
    app.query_params.clear()
    app.query_params["run"] = run
    app.run()
    until(lambda: sorted(re.findall(r'data-request="(\w+)"', all_html(app.run()))) == ["A", "B"])
    assert (figure(app, "step"), figure(app, "free")) == ("0", "9"), (
        "the pool of the link, and the same address asks once"
    )
