"""Experiments with a run of the live page, on the tiny model: requests come, fork and go; time is travelled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from engine import Engine, SamplingParams
from engine.events import PreemptionMode
from engine.lab.branch import branch_at, past_of
from engine.lab.scratch import parts_maker
from engine.lab.two_futures import future_of
from engine.weights import load_model
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from views.live_config import live_config

LONG_TALE = "added in full flight"
"""The tiny model has 135 tokens to say to this."""


@pytest.fixture
def live(page: Page, app_server: AppServer) -> LivePage:
    return LivePage(page, app_server.url)


def test_requests_are_added_forked_and_aborted_while_the_engine_runs(live: LivePage) -> None:
    live.open(prompt=LONG_TALE, max_tokens=400, num_blocks=400, pace="5 steps a second", temperature=0)
    live.add()
    live.button("run").click()
    live.wait_for_step(2)
    live.button("fork").click()
    expect(live.page.locator("[data-request=B]")).to_have_attribute("data-status", "running")
    live.button("add").click()
    expect(live.page.locator("[data-request=C]")).to_have_attribute("data-status", "running")
    live.choose_request("A")
    live.button("abort").click()
    expect(live.page.locator("[data-request=A]")).to_have_attribute("data-status", "finished")
    before = int(live.figure("step"))
    live.wait_for_step(before + 1)
    label = live.page.locator(".st-key-memory_map .bar .label")
    shown = label.inner_text()
    expect(label).not_to_have_text(shown)
    live.button("pause").click()
    expect(live.button("step")).to_be_enabled()
    live.settle()
    expect(label).to_have_text(f"Step {live.figure('step')}")
    assert {name: live.status(name) for name in "ABC"} == {"A": "finished", "B": "running", "C": "running"}
    assert (live.prompt("B"), live.prompt("C")) == (LONG_TALE, LONG_TALE)
    assert live.reply("B").startswith(live.reply("C")), "B has been at it since A began"
    expect(live.button("fork")).to_be_disabled()
    live.choose_request("B")
    assert len(live.table("B")) >= 2


@pytest.mark.parametrize(
    ("make_room", "mode", "status", "lane"),
    [("Swap out", "swap", "swapped", "Swapped out"), ("Compute again", "recompute", "preempted", "Preempted")],
)
def test_queues_are_lanes_that_fill_and_empty(
    live: LivePage, make_room: str, mode: PreemptionMode, status: str, lane: str
) -> None:
    """Four requests in a pool too small for them: some run, one is thrown out, one still waits."""
    live.open(prompt="abcdefgh", num_blocks=6, make_room=make_room, seed=3, max_tokens=12)
    engine = Engine(live_config("tiny-random", 4, 6, True, mode))
    for prompt in ("abcdefgh", "abcdefgh", "abcdefgh", "abcdewxy"):
        live.setting("Prompt").fill(prompt)
        live.add()
        engine.add_request(prompt, SamplingParams(temperature=0.7, max_tokens=12, seed=3))
    assert lanes(live) == {"Waiting": ["A", "B", "C", "D"]}
    for _ in range(2):
        live.step()
        engine.step()
    requests = engine.snapshot().requests
    assert {request.status for request in requests.values()} == {"running", status, "waiting"}
    assert lanes(live) == {
        name: [request_id for request_id, request in requests.items() if request.status == its]
        for name, its in (("Running", "running"), ("Waiting", "waiting"), (lane, status))
    }
    reason = live.page.locator(".st-key-memory_map .lane", has_text=lane).locator(".reason").inner_text()
    assert reason == next(request.reason for request in requests.values() if request.status == status)


def lanes(live: LivePage) -> dict[str, list[str]]:
    live.page.wait_for_timeout(150)  # the map hears of a step over its own line
    rows = live.page.locator(".st-key-memory_map .lane").all()
    return {row.locator(".lane-name").inner_text(): row.locator("b").all_inner_texts() for row in rows}


def test_another_future_is_taken_from_any_step_and_both_are_in_one_chart(live: LivePage) -> None:
    live.open(prompt="abcdefghij", block_size=4, num_blocks=30, samples=2, seed=3, max_tokens=16)
    live.add()
    live.step(8)
    live.tool("Time travel")
    the_map = live.page.locator(".st-key-memory_map")
    for _ in range(3):
        the_map.get_by_role("button", name="Step back").click()
    expect(live.page.get_by_label("Branch after step (0 to 8)")).to_have_value("5")
    live.page.get_by_label("Block size there").fill("16")
    live.page.keyboard.press("Tab")
    live.settle()
    live.button("branch").click()
    live.expect_figure("branch.at_step", "5")

    config = live_config("tiny-random", 4, 30, True, "recompute")
    engine = Engine(config)
    engine.add_request("abcdefghij", SamplingParams(temperature=0.7, max_tokens=16, n=2, seed=3))
    for _ in range(8):
        engine.step()
    parts = parts_maker(load_model("tiny-random"))
    branch = branch_at(past_of(engine), parts, 5, replace(config, block_size=16))
    was, future = future_of(branch.past, 0), future_of(branch.future, 5)
    assert branch.is_past_repeated and was.peak_held_slots != future.peak_held_slots
    live.expect_figure("was.peak_held_slots", str(was.peak_held_slots))
    live.expect_figure("future.peak_held_slots", str(future.peak_held_slots))
    live.expect_figure("future.last_step", str(future.last_step))
    expect(live.page.get_by_text("every event was the same")).to_be_visible()
    expect(live.page.get_by_text("A#1 says the same in both, as far as both go: 18 tokens.")).to_be_visible()
    assert live.table_of("Slots held after each step") == [
        [
            str(step),
            str(was.usage[step].num_held_slots) if step <= 8 else "–",
            str(future.usage[step - 5].num_held_slots) if step >= 5 else "–",
        ]
        for step in range(max(8, future.last_step) + 1)
    ]
    assert live.page.locator(".st-key-two_futures .scatterlayer .trace").count() == 2
    expect(live.page.locator(".st-key-branch_map .bar .label")).to_have_text(f"Step {future.last_step}")
