"""What two prompts share, why no more, and an edit that does it."""

from __future__ import annotations

import pytest

from engine.lab.why_not_shared import Prompt, why_not_shared
from engine.tokenizer import ByteTokenizer
from tests.helpers.models import loaded

BYTES = ByteTokenizer()


def test_one_letter_in_the_second_block() -> None:
    answer = why_not_shared(BYTES, 4, "abcdefghij", "abcdeXghij")
    assert (answer.first_difference, answer.num_common_tokens, answer.num_shared_blocks) == (5, 5, 1)
    assert answer.reasons[0].startswith("Token 5 is the first that differs.")
    assert answer.reasons[1].startswith("The 1 common token before it")
    assert answer.edit is not None
    assert (answer.edit.text, answer.edit.num_characters, answer.edit.num_shared_blocks) == ("abcdefghij", 1, 2)


def test_a_leading_blank() -> None:
    answer = why_not_shared(BYTES, 4, "abcdefghij", " abcdefghij")
    assert (answer.first_difference, answer.num_shared_blocks) == (0, 0)
    assert "blanks at the start" in answer.reasons[0]
    assert answer.edit is not None and (answer.edit.text, answer.edit.num_characters) == ("abcdefghij", 1)


def test_a_partial_tail_block() -> None:
    answer = why_not_shared(BYTES, 4, "abcdefghij", "abcdef")
    assert (answer.num_common_tokens, answer.num_shared_blocks) == (6, 1)
    assert answer.reasons == (
        "The shorter prompt ends inside a block: its last 2 tokens fill no block, and only full blocks can be found.",
    )
    # Two characters fill the block, and a third is the token that is left to compute.
    assert answer.edit is not None and (answer.edit.text, answer.edit.num_characters) == ("abcdefghi", 3)


def test_equal_prompts_compute_their_last_token() -> None:
    answer = why_not_shared(BYTES, 4, "abcdefgh", "abcdefgh")
    assert answer.first_difference is None and answer.num_shared_blocks == 1
    assert answer.reasons[-1].startswith("The last token of a prompt is always computed")
    assert answer.edit is not None and answer.edit.num_characters == 1 and answer.edit.num_shared_blocks == 2


def test_a_first_prompt_without_another_full_block_cannot_be_met() -> None:
    answer = why_not_shared(BYTES, 4, "abc", "abcdefgh")
    assert answer.num_shared_blocks == 0 and answer.edit is None
    assert answer.reasons[0].startswith("The shorter prompt ends inside a block: its last 3 tokens")


@pytest.mark.parametrize("text", ["", "x" * 2001])
def test_prompts_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 2000 characters"):
        why_not_shared(BYTES, 4, "abc", text)


@pytest.mark.embedded
def test_words_and_templates() -> None:
    tokenizer = loaded(dtype="auto").tokenizer
    answer = why_not_shared(tokenizer, 2, "The red fox ran home", "The red dog ran home")
    assert answer.pieces[1][:3] == ("The", " red", " dog") and answer.num_shared_blocks == 1
    assert answer.edit is not None and answer.edit.text == "The red fox ran home" and answer.edit.num_characters == 2
    mixed = why_not_shared(tokenizer, 2, Prompt("The red fox", as_chat=True), "The red fox")
    assert mixed.num_shared_blocks == 0 and "chat template" in mixed.reasons[0] and mixed.edit is None
    chat = why_not_shared(
        tokenizer, 4, Prompt("The red fox ran", as_chat=True), Prompt("The red dog ran", as_chat=True)
    )
    assert chat.num_shared_blocks > 3 and chat.edit is not None and "fox" in chat.edit.text
