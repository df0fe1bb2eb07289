"""The equation is unchanged, in the browser: what the page shows is what the lab's function returns."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from course.equation.experiment import EquationReport, equation
from course.equation.lesson import LESSON as EQUATION
from engine import EngineConfig
from engine.model.kv_cache_size import size_in_words
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until_equal
from views.browser.text_safe import visible_piece

pytestmark = pytest.mark.slow  # the embedded model in float32; app tests cover the page

PROMPTS = ["The opposite of hot is", "日本の首都は"]
REPLIES = "The replies, token by token"
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
    assert expected.are_tokens_equal
    lab.expect_figure("tokens", "all equal")
    lab.unfold(REPLIES)
    for prompt in expected.prompts:
        pieces = [visible_piece(display(token_id)) for token_id in prompt.paged_token_ids]
        table = f"[data-tokens-of={prompt.request_id}]"
        lab.expect_chips(table, pieces * 2)  # contiguous above, paged below
        apart = ["Logit difference", *(f"{difference:.2g}" for difference in prompt.logit_differences)]
        until_equal(lambda table=table: lab.rows(table)[2:3], [apart])
        lab.expect_text(f"[data-text={prompt.request_id}]", prompt.text)
    lab.expect_figure("report.largest_logit_difference", f"{expected.largest_logit_difference:.2g}")
    lab.expect_figure("report.tolerance", f"{expected.tolerance:g}")
    lab.expect_figure("contiguous_size", size_in_words(expected.contiguous_bytes))
    lab.expect_figure("paged_size", size_in_words(expected.paged_bytes))
    banner = f"Attention backend: {expected.backend} ({expected.backend_reason})"
    expect(page.locator("[data-banner]")).to_contain_text(banner)


@pytest.mark.embedded
def test_another_block_size_changes_the_memory_and_no_token(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, EQUATION).open(
        prompts="\n".join(PROMPTS), max_tokens=6, reserved=64
    )
    in_blocks_of_4, in_blocks_of_32 = report(block_size=4), report(block_size=32)
    tokens = in_blocks_of_4.prompts[0].paged_token_ids
    pieces = [visible_piece(loaded().tokenizer.display(token_id)) for token_id in tokens]
    lab.expect_figure("paged_size", size_in_words(in_blocks_of_4.paged_bytes))
    lab.unfold(REPLIES)
    lab.expect_chips("[data-tokens-of=A]", pieces * 2)
    lab.press("Blocks of 32")
    page.wait_for_url("**block_size=32*")
    assert in_blocks_of_4.paged_bytes != in_blocks_of_32.paged_bytes
    lab.expect_figure("paged_size", size_in_words(in_blocks_of_32.paged_bytes))
    lab.expect_chips("[data-tokens-of=A]", pieces * 2)


def test_both_memories_follow_one_slider(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, EQUATION).open(prompts="abcdef\nxyz", max_tokens=8, reserved=32)
    lab.drag_map("map_equation", 0.3)
    step = lab.standing_at("map_equation")
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=16, max_model_len=32)
    trace = equation(loaded("tiny-random"), config, ["abcdef", "xyz"], max_tokens=8).paged_trace
    written = sum(sequence.num_computed_tokens for sequence in trace.at(step).sequences.values())
    assert 0 < step < trace.num_steps and written > 0
    for key in ("map_equation", "map_paged"):
        until_equal(lambda key=key: lab.map_figures(key).get("waste.token_states"), str(written))
    page.wait_for_url(f"**step={step}*")


def test_typed_text_is_shown_verbatim(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, EQUATION).open(max_tokens=2)
    lab.type("Prompts, one a line", HOSTILE)
    lab.unfold(REPLIES)
    lab.expect_text("[data-prompt=A]", HOSTILE)
