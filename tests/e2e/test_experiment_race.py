"""The race, in the browser: drawn and typed arrivals, four memories under one slider, the chart's numbers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from course.race.experiment import Lane, race
from course.race.lesson import LESSON as RACE
from engine.baselines.arrivals import ALPACA, draw_arrivals, parse_arrivals
from engine.baselines.fragmentation import PAPER_FIGURE_2
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.waiting import until_equal

TYPED = "1 5 9\n1 6 10\n2 8 8"


def told_by(lane: Lane) -> str:
    """The beginning of the sentence about the lane's first stop."""
    obstacle = lane.first_obstacle
    if obstacle is None:
        return f"{lane.name} never makes a request wait."
    what = {"waits": "makes {} wait", "preempted": "must preempt {}", "refused": "refuses {}"}[obstacle.kind]
    return f"{lane.name} {what.format(obstacle.request_id)} in step {obstacle.step}: {obstacle.reason}"


def test_alpaca_arrivals_stop_each_layout_at_its_own_step(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, RACE).open(seed=2)
    arrivals = draw_arrivals(ALPACA.scaled(0.25), 40, requests_per_step=1.5, max_model_len=64, seed=2)
    lanes = race(arrivals, num_slots=256, block_size=4, max_model_len=64)
    assert len({lane.first_obstacle.step for lane in lanes if lane.first_obstacle}) == 4
    for lane in lanes:
        lab.expect_told(told_by(lane))
    lab.unfold("Where the slots went")
    page.get_by_text("Percent of the memory, ours and the paper's: the same as a table").click()
    table = '[aria-label="Percent of the memory, ours and the paper\'s"]'
    kinds = ("token_states", "reservation", "internal_fragmentation", "external_fragmentation", "free")
    ours = [[lane.name, "ours", *(f"{lane.average_percent()[kind]:.1f}" for kind in kinds)] for lane in lanes]
    until_equal(lambda: lab.rows(table)[::2], ours)
    papers = [["the paper's", str(PAPER_FIGURE_2[name]["token_states"])] for name in ("Max", "Pow2", "Oracle", "vLLM")]
    until_equal(lambda: [row[1:3] for row in lab.rows(table)[1::2]], papers)


@pytest.mark.slow
def test_typed_arrivals_run_and_each_pair_of_maps_follows_one_slider(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, RACE).open(blocks=16, limit=32)
    lab.choose("typed in")
    lab.type("Requests: step, prompt tokens, reply tokens", TYPED)
    lanes = race(parse_arrivals(TYPED), num_slots=64, block_size=4, max_model_len=32)
    for lane in lanes:
        lab.expect_told(told_by(lane))
    lab.drag_map("map_race", 0.5)
    step = lab.standing_at("map_race")
    assert 0 < step < min(lane.num_steps for lane in lanes)
    for name in ("Max", "Pow2", "Oracle"):
        if name != "Max":  # chosen when the page opens
            lab.choose(name)
        for lane, key in zip((lanes[NAMES.index(name)], lanes[-1]), ("map_race", "map_paged"), strict=True):
            until_equal(lambda key=key: lab.map_figures(key), figures(lane, step))


NAMES = ("Max", "Pow2", "Oracle", "Paged")


def figures(lane: Lane, step: int) -> dict[str, str]:
    """What stands beside the lane's map."""
    return {
        "name": lane.name,
        "running": str(lane.num_running[step]),
        "waiting": str(lane.num_waiting[step]),
        "waste.token_states": str(lane.waste[step].token_states),
    }


@pytest.mark.slow
def test_sampled_arrivals_can_be_copied_and_edited(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, RACE).open(requests=3, seed=1)
    told = lab.told()
    lab.press("Edit these arrivals")
    box = page.get_by_label("Requests: step, prompt tokens, reply tokens", exact=True)
    drawn = draw_arrivals(ALPACA.scaled(0.25), 3, requests_per_step=1.5, max_model_len=64, seed=1)
    lines = [f"{a.arrival_step} {a.num_prompt_tokens} {a.num_output_tokens}" for a in drawn]
    expect(box).to_have_value("\n".join(lines))
    until_equal(lab.told, told)  # the same arrivals, so the same race
    lab.type("Requests: step, prompt tokens, reply tokens", "1 5\n")
    lab.expect_problem(re.compile("^Line 1 must be three whole numbers"))
