"""Preemption, in the browser: the pool shrinks until somebody is preempted; both ways with their measured cost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from course.preemption.experiment import blocks_that_preempt, compare_preemption
from course.preemption.lesson import LESSON as PREEMPTION
from engine import EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory
from engine.trace.events import RequestPreempted
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until, until_equal

PROMPTS = ["The red fox", "A blue whale"]
COSTS = "[aria-label='Recompute compared with swap']"
TIMES = "[aria-label='Time of each step in ms, median of the runs']"
MEASURED = "[aria-label='What differs between the two ways, in ms']"
ADDRESS = {"prompts": "\n".join(PROMPTS), "max_tokens": 10, "num_blocks": 40}


def config(num_blocks: int) -> EngineConfig:
    return EngineConfig(model="tiny-random", block_size=4, num_blocks=num_blocks, max_model_len=22)


@pytest.mark.slow
def test_a_smaller_pool_preempts_and_both_costs_are_shown(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**ADDRESS)
    lab.expect_told("No request was preempted. All of them fit in 40 blocks")
    lab.press("Shrink until one is preempted")
    num_blocks = blocks_that_preempt(config(40), [11, 12], 10)
    assert num_blocks == 10
    page.wait_for_url("**num_blocks=10*")
    params = SamplingParams(max_tokens=10, ignore_eos=True)
    comparison = compare_preemption(components_factory(loaded("tiny-random")), config(num_blocks), PROMPTS, params)
    for name, field in (
        ("Preemptions", "num_preemptions"),
        ("Tokens computed a second time", "num_recomputed_tokens"),
        ("Blocks copied out", "num_swapped_out"),
        ("Blocks copied back", "num_swapped_in"),
        ("Steps until all were done", "num_steps"),
    ):
        both = [str(getattr(comparison.recompute, field)), str(getattr(comparison.swap, field))]
        until_equal(lambda name=name: counts(lab).get(name), both)
    assert len(counts(lab)) == 5, "no time is shown that nobody measured"
    lab.unfold("The replies")
    for reply in comparison.swap.replies:
        lab.expect_text(f"[data-reply='swap-{reply.seq_id}'] .reply", reply.text)
    expect(lab.page.locator("[data-reply][data-wrong]")).to_have_count(0)


def counts(lab: ExperimentPage) -> dict[str, list[str]]:
    """What recompute and swap cost, by the row's name."""
    return {name: cells for name, *cells in lab.rows(COSTS)}


def test_both_memory_maps_open_at_the_preemption_and_follow_the_slider(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**{**ADDRESS, "num_blocks": 10})
    params = SamplingParams(max_tokens=10, ignore_eos=True)
    comparison = compare_preemption(components_factory(loaded("tiny-random")), config(10), PROMPTS, params)
    [preempted] = [event.step for event in comparison.recompute.trace if isinstance(event, RequestPreempted)]
    until_equal(lambda: lab.standing_at("map_preemption"), preempted)
    lab.drag_map("map_preemption", 0.98)
    step = lab.standing_at("map_preemption")
    assert step > preempted
    for key, lane in (("map_preemption", comparison.recompute), ("map_swap", comparison.swap)):
        counters = lane.trace.at(step).counters
        both: list[str | None] = [str(counters.num_preemptions), str(counters.num_recomputed_tokens)]
        until_equal(lambda key=key: preemptions_beside(lab, key), both)
    assert preemptions_beside(lab, "map_preemption")[1] == "20"


def preemptions_beside(lab: ExperimentPage, key: str) -> list[str | None]:
    """How often somebody was preempted, and the tokens computed again, beside a map."""
    shown = lab.map_figures(key)
    return [shown.get(f"counters.{name}") for name in ("num_preemptions", "num_recomputed_tokens")]


@pytest.mark.slow
def test_the_pool_is_made_smaller_by_hand_down_to_where_a_prompt_cannot_run(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**{**ADDRESS, "num_blocks": 7})
    slider = page.get_by_role("slider", name="Blocks in the pool")
    expect(slider).to_have_value("7")
    lab.expect_told("freed the blocks")
    for _ in range(2):
        with lab.acting():
            slider.press("ArrowLeft")
    lab.expect_problem(re.compile(r"^It may need 6 blocks of 4; the pool has 5\."))


@pytest.mark.slow
def test_times_are_measured_when_asked_for_and_the_preempted_step_is_marked(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PREEMPTION).open(**{**ADDRESS, "num_blocks": 10})
    lab.expect_told("Step 10 preempts B: another request needed a block, and none was free.")
    expect(lab.map("map_preemption").locator(".bar .label")).to_have_text("step 10: B preempted")
    expect(page.locator(MEASURED)).to_have_count(0)
    page.get_by_role("button", name="Measure the times", exact=True).click()
    expect(page.locator(MEASURED)).to_be_visible(timeout=60_000)
    rows = lab.rows(MEASURED)
    assert [row[0] for row in rows][2::3] == ["Recompute: the difference", "Swap: both copies"]
    for _name, middle, lowest, highest in rows:
        assert float(lowest) <= float(middle) <= float(highest)
    page.get_by_text("Time of each step in ms, median of the runs: the same as a table").click()
    expect(page.locator(TIMES)).to_be_visible()
    assert [row[-1] for row in lab.rows(TIMES)][9:] == ["B preempted", "B computed again; B copied back"]
    times = lab.rows(TIMES)
    page.get_by_role("button", name="Measure the times", exact=True).click()
    until(lambda: lab.rows(TIMES) not in ([], times), what="other times")
