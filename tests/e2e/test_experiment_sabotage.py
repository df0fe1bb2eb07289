"""Sabotage, in the browser: each fault does its own damage, and the page names it as the lab does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from course.sabotage.experiment import run_with_fault
from course.sabotage.faults import FAULTS, Fault
from course.sabotage.lesson import LESSON as SABOTAGE
from engine import EngineConfig
from engine.inspect.scratch import components_factory
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until_equal
from views.browser.text_safe import visible_piece

pytestmark = pytest.mark.slow  # the embedded model, twice; app tests cover the page

PROMPT = "The capital of France is Paris, and the capital of Spain is"
CONFIG = EngineConfig(block_size=4, num_blocks=24, max_model_len=64, enable_prefix_caching=False)


@pytest.mark.embedded
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_fault_shows_its_replies_its_invariant_and_its_reads(
    page: Page, embedded_server: AppServer, fault: Fault
) -> None:
    lab = ExperimentPage(page, embedded_server.url, SABOTAGE).open(prompt=PROMPT)
    if fault is not FAULTS[0]:
        lab.choose(fault.title)
    model = loaded(dtype="auto")
    report = run_with_fault(components_factory(model), CONFIG, model.tokenizer.encode(PROMPT), fault)
    for reply in report.replies:
        name = reply.healthy.seq_id
        lab.expect_text(f"[data-reply='healthy-{name}'] .reply", reply.healthy.text)
        lab.expect_text(f"[data-reply='broken-{name}'] .reply", reply.faulty.text)
    assert report.rule
    lab.expect_figure("rule", report.rule)
    lab.expect_figure("detected", str(report.detected_after_step))
    lab.expect_figure("num_wrong_reads", str(len(report.wrong_reads)))
    lab.expect_told(report.detail)
    lab.expect_told(fault.sentence)
    if report.wrong_reads:
        first = report.wrong_reads[0]
        where = [str(first.step), first.seq_id, str(first.block_id)]
        lab.unfold("Wrong reads: which block, and what it held")
        until_equal(lambda: [[row[0].split(",")[0], *row[1:3]] for row in lab.rows("[data-wrong-reads]")[:1]], [where])
        assert visible_piece(model.tokenizer.display(first.wanted_token_id)) in lab.rows("[data-wrong-reads]")[0][3]
    slider = lab.map("map_sabotage").locator("input.range")  # a log that contradicts itself is not drawn
    expect(slider).to_have_attribute("max", str(report.last_drawable_step))


def test_a_prompt_too_short_for_the_scene_is_refused_with_a_reason(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, SABOTAGE).open(deed="free")
    lab.type("Prompt", "ab")
    lab.expect_problem("This experiment needs a prompt of at least 4 tokens.")
    lab.type("Prompt", "abcd")
    lab.expect_figure("rule", "ref_cnt")
    expect(page.locator(".pv-notice.problem")).to_have_count(0)
