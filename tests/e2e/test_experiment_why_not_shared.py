"""Why didn't these share, in the browser: a blank, a word, an edit that is made, and any writing verbatim."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from engine.lab.why_not_shared import why_not_shared
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from views.course import WHY_NOT_SHARED
from views.text_safe import visible_piece

FIRST_BOX, SECOND_BOX = "The first prompt", "The second prompt, asked later"
FIRST = "You are a careful clerk. Today is Monday, and the office opens at nine."
SECOND = "You are a careful clerk. Today is Friday, and the office opens at nine."


@pytest.mark.embedded
def test_the_edit_is_made_until_no_block_is_left_to_share(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, WHY_NOT_SHARED).open()
    lab.type(FIRST_BOX, FIRST)
    lab.type(SECOND_BOX, SECOND)
    second, tokenizer = SECOND, loaded(dtype="auto").tokenizer
    for _ in range(8):
        answer = why_not_shared(tokenizer, 4, FIRST, second)
        assert lab.figure("answer.num_shared_blocks") == str(answer.num_shared_blocks)
        assert lab.figure("first_difference") == (
            "none" if answer.first_difference is None else str(answer.first_difference)
        )
        shared = [row[0] for row in lab.rows("[data-blocks]") if row[3] == "yes"]
        assert shared == [str(index) for index in range(answer.num_shared_blocks)]
        assert all(reason in lab.text(".pv-beats >> nth=0") for reason in answer.reasons)
        if answer.edit is None:
            break
        lab.press("Make this edit")
        second = answer.edit.text
        expect(page.get_by_label(SECOND_BOX, exact=True)).to_have_value(second)
    assert answer.edit is None and second == FIRST
    expect(page.get_by_role("button", name="Make this edit", exact=True)).to_have_count(0)


@pytest.mark.embedded
def test_a_leading_blank_shares_nothing_and_is_visible(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, WHY_NOT_SHARED).open()
    assert (lab.figure("answer.num_shared_blocks"), lab.figure("first_difference")) == ("0", "0")
    assert lab.chips("[data-blocks] tbody tr:first-child td:nth-of-type(1)")[0] == "The"
    assert lab.chips("[data-blocks] tbody tr:first-child td:nth-of-type(2)")[0] == "·The"
    assert lab.text("[data-edit] del") == "·"
    lab.press("A chat template")
    assert "wrapped in the chat template" in lab.text(".pv-beats >> nth=0")


def test_any_writing_stands_there_token_by_token(page: Page, app_server: AppServer) -> None:
    """The tiny model reads bytes, so every character is one token or more."""
    hostile = "a\tb  <b>**x**</b> 日é👩‍👧"
    lab = ExperimentPage(page, app_server.url, WHY_NOT_SHARED).open()
    lab.type(FIRST_BOX, hostile)
    lab.type(SECOND_BOX, hostile + "!")
    tokenizer = loaded("tiny-random").tokenizer
    pieces = [visible_piece(tokenizer.display(token_id)) for token_id in tokenizer.encode(hostile)]
    assert lab.chips("[data-blocks] td:nth-of-type(1)") == pieces
    assert lab.chips("[data-blocks] td:nth-of-type(2)") == [*pieces, "!"]
