"""Preemption, in the browser: the pool shrinks until somebody is preempted; both ways with their measured cost."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from engine import EngineConfig, SamplingParams
from engine.events import RequestPreempted
from engine.lab.preemption_race import blocks_that_preempt, preemption_race
from engine.lab.scratch import parts_maker
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until, until_equal
from views.course import PREEMPTION

PROMPTS = ["The red fox", "A blue whale"]
COSTS = "[aria-label='Recompute against swap']"
TIMES = "[aria-label='Time of each step in ms, measured in this run']"
ADDRESS = {"prompts": "\n".join(PROMPTS), "max_tokens": 10, "num_blocks": 40}


def config(num_blocks: int) -> EngineConfig:
    return EngineConfig(model="tiny-random", block_size=4, num_blocks=num_blocks, max_model_len=22)


def test_shrinking_preempts_and_both_ways_tell_their_cost(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**ADDRESS)
    lab.expect_told("Nobody was preempted. All requests fit in 40 blocks")
    lab.press("Shrink until someone is preempted")
    num_blocks = blocks_that_preempt(config(40), [11, 12], 10)
    assert num_blocks == 10
    page.wait_for_url("**num_blocks=10*")
    params = SamplingParams(max_tokens=10, ignore_eos=True)
    race = preemption_race(parts_maker(loaded("tiny-random")), config(num_blocks), PROMPTS, params)
    for name, field in (
        ("Times somebody was preempted", "num_preemptions"),
        ("Tokens computed a second time", "num_recomputed_tokens"),
        ("Blocks copied out", "num_swapped_out"),
        ("Blocks copied back", "num_swapped_in"),
        ("Steps until all were done", "num_steps"),
    ):
        both = [str(getattr(race.recompute, field)), str(getattr(race.swap, field))]
        until_equal(lambda name=name: counts(lab).get(name), both)
    assert all(re.fullmatch(r"\d+", cell) for cell in counts(lab)["Time of all steps, ms, measured in this run"])
    for reply in race.swap.replies:
        lab.expect_text(f"[data-reply='swap-{reply.seq_id}'] .reply", reply.text)
    expect(lab.page.locator("[data-reply][data-wrong]")).to_have_count(0)


def counts(lab: ExperimentPage) -> dict[str, list[str]]:
    """What recompute and swap cost, by the row's name."""
    return {name: cells for name, *cells in lab.rows(COSTS)}


def test_both_memories_stand_at_the_preemption_and_follow_the_slider(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**{**ADDRESS, "num_blocks": 10})
    params = SamplingParams(max_tokens=10, ignore_eos=True)
    race = preemption_race(parts_maker(loaded("tiny-random")), config(10), PROMPTS, params)
    [preempted] = [event.step for event in race.recompute.trace if isinstance(event, RequestPreempted)]
    until_equal(lambda: lab.standing_at("map_preemption"), preempted)
    lab.drag_map("map_preemption", 0.98)
    step = lab.standing_at("map_preemption")
    assert step > preempted
    for key, lane in (("map_preemption", race.recompute), ("map_swap", race.swap)):
        counters = lane.trace.at(step).counters
        both: list[str | None] = [str(counters.num_preemptions), str(counters.num_recomputed_tokens)]
        until_equal(lambda key=key: preemptions_beside(lab, key), both)
    assert preemptions_beside(lab, "map_preemption")[1] == "20"


def preemptions_beside(lab: ExperimentPage, key: str) -> list[str | None]:
    """How often somebody was preempted, and the tokens computed again, beside a map."""
    shown = lab.map_figures(key)
    return [shown.get(f"counters.{name}") for name in ("num_preemptions", "num_recomputed_tokens")]


def test_the_pool_is_made_smaller_by_hand_down_to_where_a_prompt_cannot_run(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**{**ADDRESS, "num_blocks": 7})
    slider = page.get_by_role("slider", name="Blocks in the pool")
    expect(slider).to_have_value("7")
    lab.expect_told("threw blocks away")
    for _ in range(2):
        with lab.acting():
            slider.press("ArrowLeft")
    lab.expect_problem(re.compile(r"^It may need 6 blocks of 4; the pool has 5\."))


def test_measuring_again_keeps_the_counts(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**{**ADDRESS, "num_blocks": 10})
    page.get_by_text("Time of each step in ms, measured in this run: the same as a table").click()
    expect(page.locator(TIMES)).to_be_visible()
    before, times = lab.rows(COSTS)[:5], lab.rows(TIMES)
    assert len(before) == 5 and times
    lab.press("Measure again")
    until(lambda: lab.rows(TIMES) not in ([], times), what="other times")
    until_equal(lambda: lab.rows(COSTS)[:5], before)
