"""Experiments with a run of the live page, on the tiny model: requests come, fork and go; time is travelled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from engine import Engine, SamplingParams
from engine.inspect.branch import branch_at, past_of, run_usage
from engine.inspect.scratch import components_factory
from engine.model.weights.load import load_model
from engine.trace.events import PreemptionMode
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from tests.helpers.map_page import cells_of
from tests.helpers.waiting import until, until_equal
from views.live.config import live_config

PROMPT = "added in full flight"


@pytest.fixture
def live(page: Page, app_server: AppServer) -> LivePage:
    return LivePage(page, app_server.url)


@pytest.mark.slow
def test_requests_are_added_forked_and_aborted_while_the_engine_runs(live: LivePage) -> None:
    without_end = {"max_tokens": 400, "num_blocks": 400, "stop_at_end": "false"}
    live.open(prompt=PROMPT, pace="2 steps a second", temperature=0, **without_end)
    live.add()
    live.button("run").click()
    live.wait_for_step(2)
    live.button("fork").click()
    live.expect_status("B", "running")
    live.button("add").click()
    live.expect_status("C", "running")
    live.choose_request("A")
    live.button("abort").click()
    live.expect_status("A", "finished")
    before = int(live.figure("step"))
    live.wait_for_step(before + 1)
    label = live.page.locator(".st-key-memory_map .bar .label")
    shown = label.inner_text()
    expect(label).not_to_have_text(shown)
    live.button("pause").click()
    expect(live.button("step")).to_be_enabled()
    live.settle()
    until(lambda: label.inner_text() == f"Step {live.figure('step')}", what="the map at the last step")
    for name, status in (("A", "finished"), ("B", "running"), ("C", "running")):
        live.expect_status(name, status)
    live.expect_prompt("B", PROMPT)
    live.expect_prompt("C", PROMPT)
    until(lambda: live.reply("B").startswith(live.reply("C")), what="B, at it since A began, is ahead of C")
    expect(live.button("fork")).to_be_disabled()
    live.choose_request("B")
    until(lambda: len(live.table("B")) >= 2, what="a table of B with two blocks")


@pytest.mark.parametrize(
    ("make_room", "mode", "status", "lane"),
    [("Swap out", "swap", "swapped", "Swapped out"), ("Recompute", "recompute", "preempted", "Preempted")],
)
@pytest.mark.slow
def test_the_queues_are_shown_as_lanes(
    live: LivePage, make_room: str, mode: PreemptionMode, status: str, lane: str
) -> None:
    """Four requests in a pool too small for them: some run, one is thrown out, one still waits."""
    live.open(prompt="abcdefgh", num_blocks=6, make_room=make_room, seed=3, max_tokens=12)
    engine = Engine(live_config("tiny-random", 4, 6, True, mode))
    for prompt in ("abcdefgh", "abcdefgh", "abcdefgh", "abcdewxy"):
        live.setting("Prompt").fill(prompt)
        live.add()
        engine.add_request(prompt, SamplingParams(temperature=0.7, max_tokens=12, seed=3))
    until_equal(lambda: lanes(live), {"Waiting": ["A", "B", "C", "D"]})
    for _ in range(2):
        live.step()
        engine.step()
    requests = engine.snapshot().requests
    assert {request.status for request in requests.values()} == {"running", status, "waiting"}
    expected = {
        name: [request_id for request_id, request in requests.items() if request.status == its]
        for name, its in (("Running", "running"), ("Waiting", "waiting"), (lane, status))
    }
    until_equal(lambda: lanes(live), expected)
    reason = next(request.reason for request in requests.values() if request.status == status)
    expect(live.page.locator(".st-key-memory_map .lane", has_text=lane).locator(".reason")).to_have_text(reason)


def lanes(live: LivePage) -> dict[str, list[str]]:
    """Who is in which lane of the map, which hears of a step over a line of its own."""
    rows = live.page.locator(".st-key-memory_map .lane:visible")
    return {name: requests for [name, *requests] in cells_of(rows, ".lane-name, b")}


@pytest.mark.slow
def test_a_branch_from_any_step_is_charted_with_the_original(live: LivePage) -> None:
    live.open(prompt="abcdefghij", block_size=4, num_blocks=30, samples=2, seed=3, max_tokens=16)
    live.add()
    live.step(8)
    live.tool("Time travel")
    the_map = live.page.locator(".st-key-memory_map")
    for _ in range(3):
        the_map.get_by_role("button", name="Step back").click()
    expect(live.page.get_by_label("Branch after step (0 to 8)")).to_have_value("5")
    live.page.get_by_label("Block size of the branch").fill("16")
    live.page.keyboard.press("Tab")
    live.settle()
    live.button("branch").click()
    live.expect_figure("branch.at_step", "5")

    config = live_config("tiny-random", 4, 30, True, "recompute")
    engine = Engine(config)
    engine.add_request("abcdefghij", SamplingParams(temperature=0.7, max_tokens=16, n=2, seed=3))
    for _ in range(8):
        engine.step()
    components = components_factory(load_model("tiny-random"))
    branch = branch_at(past_of(engine), components, 5, replace(config, block_size=16))
    was, future = run_usage(branch.past, 0), run_usage(branch.future, 5)
    assert branch.is_past_repeated and was.peak_held_slots != future.peak_held_slots
    live.expect_figure("was.peak_held_slots", str(was.peak_held_slots))
    live.expect_figure("future.peak_held_slots", str(future.peak_held_slots))
    live.expect_figure("future.last_step", str(future.last_step))
    expect(live.page.get_by_text("every event was the same")).to_be_visible()
    expect(
        live.page.get_by_text("A#1 has the same text in both runs, over the 18 tokens that both have.")
    ).to_be_visible()
    held = [
        [
            str(step),
            str(was.usage[step].num_held_slots) if step <= 8 else "–",
            str(future.usage[step - 5].num_held_slots) if step >= 5 else "–",
        ]
        for step in range(max(8, future.last_step) + 1)
    ]
    rows = live.unfold_table("Slots held after each step")
    until_equal(lambda: cells_of(rows, "td"), held)
    expect(live.page.locator(".st-key-two_futures .scatterlayer .trace")).to_have_count(2)
    expect(live.page.locator(".st-key-branch_map .bar .label")).to_have_text(f"Step {future.last_step}")
