"""Lesson "Add pages as the request grows": one request, a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pandas as pd

from engine.scenes.growth import growth
from engine.scenes.reservation import reservation
from engine.scenes.scripted_run import blocks_for
from engine.scenes.words import GUIDE_REPLY, passage, words_of
from engine.state import CacheState
from engine.usage import usage_of
from engine.waste import waste
from views.lesson_picture import CountMore, Picture, Telling, picture
from views.made_once import made_once
from views.told import Figure, tell
from views.url_values import ChoiceRule, NumberRule, TextRule

KEY = "growth"
TOKENS = "tokens"
DEFAULT_TOKENS = 11
NUM_RESERVED = 32
"""Slots of the reservation that the pages are held against, and the most words of a reader."""
LARGEST_BLOCK, LONGEST_TEXT, LARGEST_PROMPT = 16, 400, 8
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, LARGEST_BLOCK, 4)
PROMPT = NumberRule("prompt", "Words of the prompt", 1, LARGEST_PROMPT, 1)
PASSAGE, GUIDE, OWN = "running text", "the guide's reply", "my own"
TEXT = ChoiceRule("words", "Words", (PASSAGE, GUIDE, OWN))
OWN_TEXT = TextRule("text", "Your words", LONGEST_TEXT)
DEFAULT_OWN = "To be or not to be that is the question"

EXAMPLES: dict[str, dict[str, int | str]] = {
    "11 tokens on pages of 4": {"block_size": 4, "tokens": 11, "words": PASSAGE, "prompt": 1},
    "14 words in blocks of 5": {"block_size": 5, "tokens": 14, "words": GUIDE, "prompt": 1},
    "A prompt of 6 words": {"block_size": 4, "tokens": 6, "words": PASSAGE, "prompt": 6},
}
BEATS = (
    "**Two cursors.** {usage.num_tokens_known:token} known, {usage.num_tokens_written} with keys and values written. "
    "Blocks follow the second: a token takes a slot when it is written, not when it is chosen.",
    "{usage.num_tokens_written:token} take {usage.num_used_blocks:block} of {usage.block_size:slot}. "
    "Empty: {usage.num_empty_slots:slot}, and only in the last block.",
    "The same tokens in one run of {in_one_run.num_held:slot} would leave {in_one_run.num_empty:slot} empty.",
)
LAYOUT, HELD, USED, EMPTY = "Layout", "Slots held", "Slots used", "Slots empty"
COUNT, IN_ONE_RUN, ON_PAGES, STORED = "Tokens written", "Held in one run", "Held on pages", "Slots used"


def own_words(text: str) -> tuple[str, ...]:
    """The reader's words, as many as the reservation beside them has slots."""
    return words_of(text)[:NUM_RESERVED]


def words_to_store(choice: str, own: str) -> tuple[str, ...]:
    """The words of a choice; the running text when the reader has not written any."""
    if choice == GUIDE:
        return GUIDE_REPLY
    return (own_words(own) if choice == OWN else ()) or passage(24)


def _beside_a_reservation(words: Sequence[str]) -> CountMore:
    in_one_run = reservation(NUM_RESERVED, words)

    def count(state: CacheState) -> dict[str, Any]:
        return {"in_one_run": waste(in_one_run.at(usage_of(state).num_tokens_written))}

    return count


@made_once(maxsize=64)
def pages(words: tuple[str, ...], block_size: int, num_prompt_words: int) -> Picture:
    """Values: tokens written: 0, the prompt, then one more each."""
    scene = growth(
        words, block_size, num_prompt_words=min(num_prompt_words, len(words)), free_order=_scattered(words, block_size)
    )
    telling = Telling(
        label="{value:token}",
        figures=(
            Figure("Tokens known", "{usage.num_tokens_known}"),
            Figure("KV written", "{usage.num_tokens_written}"),
            Figure("Blocks held", "{usage.num_used_blocks}"),
            Figure("Slots empty", "{usage.num_empty_slots}"),
        ),
        beats=BEATS,
        more=_beside_a_reservation(words),
    )
    return picture(scene, telling, "One request on pages")


def _scattered(words: Sequence[str], block_size: int) -> list[int]:
    """An order for the free blocks in which neighbours rarely follow each other, as on a busy server."""
    num_blocks = blocks_for(len(words) + 1, block_size) + 1
    return Random(num_blocks).sample(range(num_blocks), num_blocks)


def comparison(picture: Picture, value: int) -> pd.DataFrame:
    """The same tokens in one reservation and on pages."""
    facts = picture.facts(value)
    in_one_run, on_pages = facts["in_one_run"], facts["waste"]
    blocks = tell("{usage.num_used_blocks:block} of {usage.block_size}", facts)
    rows = ((tell("one run of {in_one_run.num_held}", facts), in_one_run), (blocks, on_pages))
    return pd.DataFrame({LAYOUT: name, HELD: w.num_held, USED: w.token_states, EMPTY: w.num_empty} for name, w in rows)


def held_over_time(picture: Picture) -> pd.DataFrame:
    """One row a number of tokens written."""
    return pd.DataFrame(
        {
            COUNT: value,
            IN_ONE_RUN: facts["in_one_run"].num_held,
            ON_PAGES: facts["waste"].num_held,
            STORED: facts["waste"].token_states,
        }
        for value in picture.values
        for facts in (picture.facts(value),)
    )
