"""The equation is unchanged, in the browser: what the page shows is what the lab's function returns."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from engine import EngineConfig
from engine.lab.equation import EquationReport, equation
from engine.model_facts import size_in_words
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from views.course import EQUATION
from views.text_safe import visible_piece

PROMPTS = ["The opposite of hot is", "日本の首都は"]
HOSTILE = "<img src=x onerror=alert(1)> **b** $5 and $6\ttab 👩‍👩‍👧‍👦 مرحبا"


def report(block_size: int) -> EquationReport:
    config = EngineConfig(
        block_size=block_size, num_blocks=64, max_model_len=64, max_num_batched_tokens=128, enable_prefix_caching=False
    )
    return equation(loaded(), config, PROMPTS, max_tokens=6)


@pytest.mark.embedded
def test_typed_prompts_give_equal_tokens_in_less_memory(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, EQUATION).open(max_tokens=6, reserved=64)
    lab.type("Prompts, one a line", "\n".join(PROMPTS))
    expected = report(block_size=4)
    display = loaded().tokenizer.display
    assert expected.are_tokens_equal and lab.figure("tokens") == "all equal"
    for prompt in expected.prompts:
        pieces = [visible_piece(display(token_id)) for token_id in prompt.paged_token_ids]
        assert lab.chips(f"[data-tokens-of={prompt.request_id}]") == pieces * 2, "contiguous above, paged below"
        apart = [f"{difference:.2g}" for difference in prompt.logit_differences]
        assert lab.rows(f"[data-tokens-of={prompt.request_id}]")[2] == ["Logits apart by", *apart]
        assert lab.text(f"[data-text={prompt.request_id}]") == prompt.text
    assert lab.figure("report.largest_logit_difference") == f"{expected.largest_logit_difference:.2g}"
    assert lab.figure("report.tolerance") == f"{expected.tolerance:g}"
    assert lab.figure("contiguous_size") == size_in_words(expected.contiguous_bytes)
    assert lab.figure("paged_size") == size_in_words(expected.paged_bytes)
    assert f"Attention backend: {expected.backend} ({expected.backend_reason})" in lab.text("[data-banner]")


@pytest.mark.embedded
def test_another_block_size_changes_the_memory_and_no_token(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, EQUATION).open(
        prompts="\n".join(PROMPTS), max_tokens=6, reserved=64
    )
    before = lab.chips("[data-tokens-of=A]"), lab.figure("paged_size")
    lab.press("Blocks of 32")
    page.wait_for_url("**block_size=32*")
    assert lab.chips("[data-tokens-of=A]") == before[0]
    assert lab.figure("paged_size") == size_in_words(report(block_size=32).paged_bytes) != before[1]


def test_both_memories_follow_one_slider(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, EQUATION).open(prompts="abcdef\nxyz", max_tokens=8, reserved=32)
    lab.drag_map("map_equation", 0.3)
    step = lab.standing_at("map_equation")
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=16, max_model_len=32)
    trace = equation(loaded("tiny-random"), config, ["abcdef", "xyz"], max_tokens=8).paged_trace
    written = sum(sequence.num_computed_tokens for sequence in trace.at(step).sequences.values())
    assert 0 < step < trace.num_steps and written > 0
    for key in ("map_equation", "map_paged"):
        assert lab.map_figures(key)["waste.token_states"] == str(written)
    page.wait_for_url(f"**step={step}*")


def test_whatever_is_typed_stands_there_verbatim(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, EQUATION).open(max_tokens=2)
    lab.type("Prompts, one a line", HOSTILE)
    assert lab.text("[data-prompt=A]") == HOSTILE
