"""Sabotage, in the browser: each deed makes its own damage, and the page names it as the lab does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from engine import EngineConfig
from engine.lab.sabotage import sabotage
from engine.lab.saboteurs import SABOTEURS, Saboteur
from engine.lab.scratch import parts_maker
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
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
        assert lab.text(f"[data-reply='healthy-{name}'] .reply") == reply.healthy.text
        assert lab.text(f"[data-reply='broken-{name}'] .reply") == reply.sabotaged.text
    assert lab.figure("rule") == report.rule != ""
    assert lab.figure("caught") == str(report.caught_after_step)
    assert lab.figure("num_wrong_reads") == str(len(report.wrong_reads))
    assert report.detail in lab.told() and saboteur.sentence in lab.told()
    if report.wrong_reads:
        first = report.wrong_reads[0]
        row = lab.rows("[data-wrong-reads]")[0]
        assert row[:3] == [str(first.step), first.seq_id, str(first.block_id)]
        assert visible_piece(model.tokenizer.display(first.wanted_token_id)) in row[3]
    last = lab.map("map_sabotage").locator("input.range").get_attribute("max")
    assert last == str(report.last_drawable_step), "a log that contradicts itself is not drawn"


def test_a_prompt_too_short_for_the_scene_is_refused_in_words(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, SABOTAGE).open(deed="free")
    lab.type("Prompt", "ab")
    assert lab.text(".pv-notice.problem") == "This experiment needs a prompt of at least 4 tokens."
    lab.type("Prompt", "abcd")
    assert page.locator(".pv-notice.problem").count() == 0
    assert lab.figure("rule") == "ref_cnt"
