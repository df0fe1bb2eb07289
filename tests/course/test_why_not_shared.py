"""What two prompts share, why no more, and an edit that does it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from course.spread import Spread
from course.why_not_shared.experiment import TypedPrompt, why_not_shared
from course.why_not_shared.prefill_speed import PrefillSpeed, prefill_speed
from engine.inspect.scratch import components_factory
from engine.model.tokenizer import ByteTokenizer, Tokenizer, load_tokenizer
from tests.helpers.model_folders import save_byte_level_tokenizer
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
    assert "spaces at the start" in answer.reasons[0]
    assert answer.edit is not None and (answer.edit.text, answer.edit.num_characters) == ("abcdefghij", 1)


def test_a_partial_tail_block() -> None:
    answer = why_not_shared(BYTES, 4, "abcdefghij", "abcdef")
    assert (answer.num_common_tokens, answer.num_shared_blocks) == (6, 1)
    assert answer.reasons == (
        "The shorter prompt ends inside a block: its last 2 tokens do not fill a block, and only full blocks can be "
        "found.",
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


@pytest.fixture
def chatty(tmp_path: Path) -> Tokenizer:
    """One token a byte, "<bos>" 257 and "<eos>" 258, which the template writes."""
    save_byte_level_tokenizer(tmp_path, chat_template="<bos>{{ messages[0].content }}<eos>")
    return load_tokenizer(tmp_path, ())


def test_special_tokens_in_a_message_are_text_and_the_templates_own_are_marked(chatty: Tokenizer) -> None:
    answer = why_not_shared(chatty, 4, TypedPrompt("a<eos>", as_chat=True), "a<eos>")
    assert answer.pieces[0] == ("<bos>", "a", *"<eos>", "<eos>") and answer.pieces[1] == ("a", "<eos>")
    assert answer.control == (frozenset({0, 7}), frozenset({1}))


def test_a_second_bos_token_is_reported(chatty: Tokenizer) -> None:
    answer = why_not_shared(chatty, 4, "<bos>abc", "<bos><bos>abc")
    assert answer.reasons[0].startswith("The second prompt begins with 2 beginning-of-text tokens where models expect")
    assert not any(
        "beginning-of-text" in reason for reason in why_not_shared(chatty, 4, "<bos>a", "a<bos><bos>").reasons
    )


@pytest.mark.parametrize("text", ["", "x" * 20_001])
def test_prompts_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 20000 characters"):
        why_not_shared(BYTES, 4, "abc", text)


@pytest.mark.embedded
def test_words_and_templates() -> None:
    tokenizer = loaded(dtype="auto").tokenizer
    answer = why_not_shared(tokenizer, 2, "The red fox ran home", "The red dog ran home")
    assert answer.pieces[1][:3] == ("The", " red", " dog") and answer.num_shared_blocks == 1
    assert answer.edit is not None and answer.edit.text == "The red fox ran home" and answer.edit.num_characters == 2
    mixed = why_not_shared(tokenizer, 2, TypedPrompt("The red fox", as_chat=True), "The red fox")
    assert mixed.num_shared_blocks == 0 and "chat template" in mixed.reasons[0] and mixed.edit is None
    chat = why_not_shared(
        tokenizer, 4, TypedPrompt("The red fox ran", as_chat=True), TypedPrompt("The red dog ran", as_chat=True)
    )
    assert chat.num_shared_blocks > 3 and chat.edit is not None and "fox" in chat.edit.text


# ---- long system prompts, and the time they save ----


def long_prompt(date: str) -> str:
    """20,000 characters, the date behind 9,000 of them."""
    rules = "".join(f"Rule {number}: answer in one line, and say when you do not know. " for number in range(400))
    return f"{rules[:9000]}{date}{rules[9000:]}"[:20_000]


def test_two_system_prompts_of_20_000_characters() -> None:
    first, second = long_prompt("Today is Monday. "), long_prompt("Today is Friday. ")
    answer = why_not_shared(BYTES, 16, first, second)
    assert [len(tokens) for tokens in answer.tokens] == [20_000, 20_000]
    differs = 9000 + len("Today is ")
    assert (answer.first_difference, answer.num_common_tokens) == (differs, differs)
    assert (answer.num_shared_blocks, answer.num_shared_tokens) == (differs // 16, differs // 16 * 16) == (563, 9008)
    assert answer.edit is not None
    assert (answer.edit.text, answer.edit.num_characters) == (first, 3), "Fri becomes Mon"
    assert answer.edit.num_shared_blocks == (20_000 - 1) // 16 == 1249
    assert answer.num_more_tokens == (1249 - 563) * 16


def test_the_time_a_token_is_the_increase_with_prompt_length() -> None:
    speed = PrefillSpeed(Spread((10.0, 12.0, 11.0)), Spread((138.0, 140.0, 203.0)), 16, 144)
    assert (speed.is_certain, speed.tokens_per_second) == (True, 1000 * 128 / 129)
    assert speed.saved_ms(1280).times_ms == (1280.0, 1280.0, 1920.0)
    assert not replace(speed, long=Spread((138.0, 11.0, 203.0))).is_certain


def test_the_speed_is_measured_on_the_loaded_engine() -> None:
    speed = prefill_speed(components_factory(loaded("tiny-random")), "tiny-random", repeats=2)
    assert (speed.num_repeats, speed.num_fewest_tokens, speed.num_tokens) == (2, 16, 80)
    assert min(*speed.short.times_ms, *speed.long.times_ms) > 0
