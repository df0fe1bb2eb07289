"""Shuffle memory, in the browser: the two buttons, the replies, the blocks that moved."""

from __future__ import annotations

import re
from functools import cache

import pytest
from playwright.sync_api import Page, expect

from course.shuffle.experiment import ShuffleReport, shuffle_experiment
from course.shuffle.lesson import LESSON as SHUFFLE
from engine import EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until_equal

PROMPT = "Three primary colours are"
ADDRESS = {"num_blocks": 10, "max_tokens": 16, "after": 4, "seed": 3}


@cache
def report() -> ShuffleReport:
    config = EngineConfig(block_size=4, num_blocks=10, max_model_len=40, enable_prefix_caching=False)
    params = SamplingParams(max_tokens=16)
    return shuffle_experiment(components_factory(loaded(dtype="auto")), config, [PROMPT], params, after_step=4, seed=3)


@pytest.fixture
def lab(page: Page, embedded_server: AppServer) -> ExperimentPage:
    lab = ExperimentPage(page, embedded_server.url, SHUFFLE).open(**ADDRESS)
    lab.type("Prompt", PROMPT)
    return lab


@pytest.mark.embedded
def test_blocks_and_tables_move_and_the_text_is_unchanged(lab: ExperimentPage) -> None:
    lab.press("Move blocks and tables")
    reply = report().untouched.replies[0]
    for which in ("with_tables", "untouched"):
        lab.expect_text(f"[data-reply={which}] .reply", reply.text)
    lab.expect_text("[data-reply=with_tables] .verdict", f"The same {len(reply.token_ids)} tokens.")
    before = report().untouched.trace.at(4).sequences["A"].block_table
    assert len(before) == 2
    moved = [report().permutation[block_id] for block_id in before]
    until_equal(lambda: found_in(lab), [f"block {block_id}" for block_id in moved])
    until_equal(lambda: lab.map_figures("map_shuffle").get("found.num_right"), "7 of 7")


@pytest.mark.embedded
@pytest.mark.slow
def test_blocks_move_without_tables_and_the_text_changes(lab: ExperimentPage) -> None:
    lab.press("Move blocks and tables")
    lab.press("Move memory only")
    reply, [difference] = report().memory_only.replies[0], report().memory_only.first_differences
    assert difference is not None and difference >= 4
    assert reply.text != report().untouched.replies[0].text
    lab.expect_text("[data-reply=memory_only] .reply", reply.text)
    verdict = lab.page.locator("[data-reply=memory_only] .verdict")
    expect(verdict).to_have_text(re.compile(f"^The same {difference} tokens, then"))
    before = report().untouched.trace.at(4).sequences["A"].block_table
    until_equal(lambda: found_in(lab), [f"block {block_id}" for block_id in before])
    until_equal(lambda: lab.map_figures("map_shuffle").get("found.num_right"), "0 of 7")


def found_in(lab: ExperimentPage) -> list[str]:
    """The blocks that A's table leads to."""
    return [row[1] for row in lab.rows("[data-found-by=A]")]


@pytest.mark.embedded
@pytest.mark.slow
def test_the_url_restores_the_move_and_the_frame(lab: ExperimentPage) -> None:
    lab.press("Move blocks and tables")
    page, words = lab.page, report().untouched.replies[0].text
    lab.expect_text("[data-reply=with_tables] .reply", words)
    until_equal(lambda: lab.standing_at("map_shuffle"), 5)
    lab.drag_map("map_shuffle", 0.9)
    moment = lab.standing_at("map_shuffle")
    assert moment > 5
    page.wait_for_url(f"**moment={moment}*")
    copied = page.url
    page.goto("about:blank")
    page.goto(copied)
    lab.settle()
    lab.expect_text("[data-reply=with_tables] .reply", words)
    until_equal(lambda: lab.standing_at("map_shuffle"), moment)
