"""Sabotage, in the browser: each deed makes its own damage, and the page names it as the lab does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from engine import EngineConfig
from engine.lab.sabotage import sabotage
from engine.lab.saboteurs import SABOTEURS, Saboteur
from engine.lab.scratch import parts_maker
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until_equal
from views.course import SABOTAGE
from views.text_safe import visible_piece

PROMPT = "The capital of France is Paris, and the capital of Spain is"
CONFIG = EngineConfig(block_size=4, num_blocks=24, max_model_len=64, enable_prefix_caching=False)


@pytest.mark.embedded
@pytest.mark.parametrize("saboteur", SABOTEURS, ids=lambda saboteur: type(saboteur).__name__)
def test_the_deed_its_replies_its_rule_and_its_reads(
    page: Page, embedded_server: AppServer, saboteur: Saboteur
) -> None:
    lab = ExperimentPage(page, embedded_server.url, SABOTAGE).open(prompt=PROMPT)
    if saboteur is not SABOTEURS[0]:
        lab.choose(saboteur.title)
    model = loaded(dtype="auto")
    report = sabotage(parts_maker(model), CONFIG, model.tokenizer.encode(PROMPT), saboteur)
    for reply in report.replies:
        name = reply.healthy.seq_id
        lab.expect_text(f"[data-reply='healthy-{name}'] .reply", reply.healthy.text)
        lab.expect_text(f"[data-reply='broken-{name}'] .reply", reply.sabotaged.text)
    assert report.rule
    lab.expect_figure("rule", report.rule)
    lab.expect_figure("caught", str(report.caught_after_step))
    lab.expect_figure("num_wrong_reads", str(len(report.wrong_reads)))
    lab.expect_told(report.detail)
    lab.expect_told(saboteur.sentence)
    if report.wrong_reads:
        first = report.wrong_reads[0]
        where = [str(first.step), first.seq_id, str(first.block_id)]
        until_equal(lambda: [row[:3] for row in lab.rows("[data-wrong-reads]")[:1]], [where])
        assert visible_piece(model.tokenizer.display(first.wanted_token_id)) in lab.rows("[data-wrong-reads]")[0][3]
    slider = lab.map("map_sabotage").locator("input.range")  # a log that contradicts itself is not drawn
    expect(slider).to_have_attribute("max", str(report.last_drawable_step))


def test_a_prompt_too_short_for_the_scene_is_refused_in_words(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, SABOTAGE).open(deed="free")
    lab.type("Prompt", "ab")
    lab.expect_problem("This experiment needs a prompt of at least 4 tokens.")
    lab.type("Prompt", "abcd")
    lab.expect_figure("rule", "ref_cnt")
    expect(page.locator(".pv-notice.problem")).to_have_count(0)
