"""The embedded model in the browser: what the page shows equals what an engine in this process does."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from engine import Engine, EngineConfig, SamplingParams
from engine.trace.usage import block_table_of, usage_of
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from views.browser.text_safe import visible_piece
from views.live.config import MAX_NUM_SEQS, MAX_SLOTS

PROMPT = "The quick brown fox jumps over"
pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The same settings as the page is opened with, stepped five times."""
    engine = Engine(
        EngineConfig(
            model="smollm2-135m-instruct",
            block_size=3,
            num_blocks=20,
            max_num_seqs=MAX_NUM_SEQS,
            max_model_len=MAX_SLOTS,
        )
    )
    engine.add_request(PROMPT, SamplingParams(temperature=0.7, max_tokens=24, n=2, seed=7))
    for _ in range(5):
        engine.step()
    return engine


def test_after_five_steps_the_tables_and_texts_in_the_page_equal_the_engines(
    page: Page, embedded_server: AppServer, engine: Engine
) -> None:
    live = LivePage(page, embedded_server.url).open(block_size=3, num_blocks=20, samples=2, seed=7)
    live.setting("Prompt").fill(PROMPT)
    live.add()
    live.step(5)

    state, output = engine.snapshot(), engine.output("A")
    for sequence in output.outputs:
        entries = block_table_of(state, sequence.seq_id)
        live.expect_table(
            sequence.seq_id,
            [
                [
                    str(entry.logical_index),
                    str(block),
                    f"{entry.first_slot} to {entry.last_slot}",
                    f"{entry.num_written} of 3",
                    str(entry.ref_cnt),
                ]
                for entry, block in zip(entries, state.sequences[sequence.seq_id].block_table, strict=True)
            ],
        )
        live.expect_pieces(sequence.seq_id, [[visible_piece(p) for p in entry.pieces] for entry in entries])
        live.expect_reply(sequence.seq_id, sequence.text)
        live.expect_prompt(sequence.seq_id, PROMPT)
    usage = usage_of(state)
    live.expect_figure("used", str(usage.num_used_blocks))
    live.expect_figure("free", str(usage.num_free_blocks))
    live.expect_figure("copies_avoided", str(usage.num_copies_avoided))
    expect(page.locator("[data-banner]")).to_have_text(re.compile("^smollm2-135m-instruct in "))
