"""A paste over a box's limit is cut or refused with a sentence; Streamlit's `max_chars` drops it without a word."""

from __future__ import annotations

import ast

import pytest

from course.why_not_shared.experiment import MAX_LENGTH, why_not_shared
from engine.model.tokenizer import ByteTokenizer
from tests.helpers.app_server import ROOT
from views.lab.why_not_shared import LONGEST_PROMPT, MOST_ROWS, blocks_table, edited
from views.url_values import TextRule


def test_no_text_box_uses_streamlits_max_chars() -> None:
    sources = [*ROOT.glob("views/**/*.py"), *ROOT.glob("pages/*.py"), ROOT / "app.py"]
    calls = [
        (file.name, keyword.arg)
        for file in sources
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "max_chars"
    ]
    assert len(sources) > 100 and calls == []


def test_truncation_is_reported_with_the_limit() -> None:
    rule = TextRule("prompt", "The prompt", 5)
    assert rule.correct("abcde") is None
    assert rule.correct("abcdefg") == (
        "abcde",
        "The prompt: the text had 7 characters; the limit is 5, so the rest was cut off.",
    )


@pytest.mark.parametrize("num_equal", [0, 9_000, 19_999])
def test_two_long_system_prompts_are_compared_and_the_blocks_around_the_difference_drawn(num_equal: int) -> None:
    first = ("You are a patient teacher. " * 1000)[:LONGEST_PROMPT]
    second = f"{first[:num_equal]}#{first[num_equal + 1 :]}"
    answer = why_not_shared(ByteTokenizer(), 16, first, second)
    assert len(first) == MAX_LENGTH == 20_000 and len(answer.tokens[0]) == 20_000
    assert answer.num_shared_blocks == num_equal // 16
    html = blocks_table(answer)
    assert html.count("<tr data-shared=") == MOST_ROWS
    start = {0: 0, 9_000: 558, 19_999: 1050}[num_equal]
    assert f"Drawn: blocks {start} to {start + MOST_ROWS - 1} of 1250" in html
    assert answer.edit is not None
    assert answer.edit.num_characters == 1 and answer.edit.num_shared_blocks > num_equal // 16
    assert f"<ins>{first[num_equal].replace(' ', '·')}</ins>" in edited(second, answer.edit)
