"""Why didn't these share, in the browser: a space, a word, an edit that is made, and any writing verbatim."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from course.why_not_shared.experiment import why_not_shared
from course.why_not_shared.lesson import LESSON as WHY_NOT_SHARED
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage
from tests.helpers.models import loaded
from tests.helpers.waiting import until_equal
from views.browser.text_safe import visible_piece

FIRST_BOX, SECOND_BOX = "The first prompt", "The second prompt, asked later"
FIRST = "You are a careful clerk. Today is Monday, and the office opens at nine."
SECOND = "You are a careful clerk. Today is Friday, and the office opens at nine."


@pytest.mark.embedded
@pytest.mark.slow
def test_edits_apply_until_no_block_is_shared(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, WHY_NOT_SHARED).open()
    lab.type(FIRST_BOX, FIRST)
    lab.type(SECOND_BOX, SECOND)
    second, tokenizer = SECOND, loaded(dtype="auto").tokenizer
    for _ in range(8):
        answer = why_not_shared(tokenizer, 4, FIRST, second)
        differs_at = "none" if answer.first_difference is None else str(answer.first_difference)
        lab.expect_figure("first_difference", differs_at)
        lab.expect_figure("answer.num_shared_blocks", str(answer.num_shared_blocks))
        until_equal(lambda: shared_blocks(lab), [str(index) for index in range(answer.num_shared_blocks)])
        for reason in answer.reasons:
            expect(page.locator(".pv-captions").first).to_contain_text(reason)
        if answer.edit is None:
            break
        lab.press("Make this edit")
        second = answer.edit.text
        expect(page.get_by_label(SECOND_BOX, exact=True)).to_have_value(second)
    assert answer.edit is None and second == FIRST
    expect(page.get_by_role("button", name="Make this edit", exact=True)).to_have_count(0)


def shared_blocks(lab: ExperimentPage) -> list[str]:
    return [row[0] for row in lab.rows("[data-blocks]") if row[3] == "yes"]


@pytest.mark.embedded
@pytest.mark.slow
def test_a_leading_space_shares_nothing_and_is_visible(page: Page, embedded_server: AppServer) -> None:
    lab = ExperimentPage(page, embedded_server.url, WHY_NOT_SHARED).open()
    lab.expect_figure("answer.num_shared_blocks", "0")
    lab.expect_figure("first_difference", "0")
    for column, piece in ((1, "The"), (2, "·The")):
        cell = f"[data-blocks] tbody tr:first-child td:nth-of-type({column})"
        until_equal(lambda cell=cell: lab.chips(cell)[:1], [piece])
    lab.expect_text("[data-edit] del", "·")
    lab.press("A chat template")
    expect(page.locator(".pv-captions").first).to_contain_text("wrapped in the chat template")


@pytest.mark.slow
def test_any_script_is_shown_token_by_token(page: Page, app_server: AppServer) -> None:
    """The tiny model reads bytes, so every character is one token or more."""
    hostile = "a\tb  <b>**x**</b> 日é👩‍👧"
    lab = ExperimentPage(page, app_server.url, WHY_NOT_SHARED).open()
    lab.type(FIRST_BOX, hostile)
    lab.type(SECOND_BOX, hostile + "!")
    tokenizer = loaded("tiny-random").tokenizer
    pieces = [visible_piece(tokenizer.display(token_id)) for token_id in tokenizer.encode(hostile)]
    lab.expect_chips("[data-blocks] td:nth-of-type(1)", pieces)
    lab.expect_chips("[data-blocks] td:nth-of-type(2)", [*pieces, "!"])
