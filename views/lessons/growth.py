"""Lesson "Add pages as the request grows": one request, a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pandas as pd

from course.conversation import CONVERSATION
from course.growth.lesson import LESSON
from course.growth.scene import growth
from course.messages import Message, Plural
from course.reserved_space.scene import reservation
from course.scripted_engine import blocks_for
from course.words import EXAMPLE_REPLY, passage, words_of
from engine.baselines.fragmentation import waste
from engine.i18n import N_, _, counted
from engine.trace.state import CacheState
from engine.trace.usage import usage_of
from views.figures import Figure
from views.lesson_picture import CountMore, FrameTexts, Picture, picture
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule, TextRule

KEY = LESSON.key
TOKENS = "tokens"
DEFAULT_TOKENS = 11
NUM_RESERVED = 32
"""Slots of the reservation that the blocks are compared with, more for the long reply; the most words to type."""
LARGEST_BLOCK, LONGEST_TEXT, LARGEST_PROMPT = 16, 400, 16
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, LARGEST_BLOCK, 4)
PROMPT = NumberRule("prompt", N_("Words of the prompt"), 1, LARGEST_PROMPT, 1)
PASSAGE, EXAMPLE, CHAT, OWN = N_("running text"), N_("a 14-word reply"), N_("a chat request"), N_("my own")
LONG = N_("a long reply")
TEXT = ChoiceRule("words", N_("Words"), (PASSAGE, LONG, EXAMPLE, CHAT, OWN), formerly={"the guide's reply": EXAMPLE})
LONG_REPLY = 128
"""Words of the long reply: enough to look up how many blocks a hundred tokens take."""
IN_ORDER, SCATTERED = N_("in order"), N_("scattered")
PLACES = ChoiceRule("places", N_("Free blocks"), (IN_ORDER, SCATTERED))
"""A new pool gives its blocks out in order; on a busy server the next free one may lie anywhere."""
OWN_TEXT = TextRule("text", N_("Your words"), LONGEST_TEXT)
DEFAULT_OWN = "To be or not to be that is the question"

EXAMPLES: dict[str, dict[str, int | str]] = {
    N_("11 tokens in blocks of 4"): {"block_size": 4, "tokens": 11, "words": PASSAGE, "prompt": 1},
    N_("14 words in blocks of 5"): {"block_size": 5, "tokens": 14, "words": EXAMPLE, "prompt": 1},
    N_("100 tokens in blocks of 16"): {"block_size": 16, "tokens": 100, "words": LONG, "prompt": 1},
    N_("The first of three chat requests"): {
        "block_size": 4,
        "tokens": len(CONVERSATION[0].prompt),
        "words": CHAT,
        "prompt": len(CONVERSATION[0].prompt),
    },
}
CAPTIONS = (
    Message(
        N_(
            "{num_tokens_written} {num_used_blocks} of {block_size}. Empty: {num_empty_slots}, and "
            "only in the last block."
        ),
        num_tokens_written=Plural("usage.num_tokens_written", "{n} token takes", "{n} tokens take"),
        num_used_blocks=Plural("usage.num_used_blocks", "{n} block", "{n} blocks"),
        block_size=Plural("usage.block_size", "{n} slot", "{n} slots"),
        num_empty_slots=Plural("usage.num_empty_slots", "{n} slot", "{n} slots"),
    ),
    Message(
        N_(
            "At most {bound} can be empty, block size minus one, however long the reply gets. The same tokens in "
            "one region of {num_held} would leave {num_empty} empty."
        ),
        bound=Plural("usage.most_empty_in_last_block", "{n} slot", "{n} slots"),
        num_held=Plural("in_one_run.num_held", "{n} slot", "{n} slots"),
        num_empty=Plural("in_one_run.num_empty", "{n} slot", "{n} slots"),
    ),
)
LAYOUT, HELD, USED, EMPTY = N_("Layout"), N_("Slots held"), N_("Slots used"), N_("Slots empty")
COUNT, IN_ONE_RUN, ON_PAGES, STORED = (
    N_("Tokens written"),
    N_("Held in one contiguous region"),
    N_("Held in blocks"),
    N_("Slots used"),
)


def own_words(text: str) -> tuple[str, ...]:
    """The reader's words, as many as the reservation beside them has slots."""
    return words_of(text)[:NUM_RESERVED]


def words_to_store(choice: str, own: str) -> tuple[str, ...]:
    """The words of a choice; the running text when the reader has not written any."""
    if choice == EXAMPLE:
        return EXAMPLE_REPLY
    if choice == CHAT:
        return CONVERSATION[0].words
    if choice == LONG:
        return passage(LONG_REPLY)
    return (own_words(own) if choice == OWN else ()) or passage(24)


def parts_shown(places: str) -> tuple[str, ...]:
    """In order, block i is page i of the text. Where blocks are scattered, the text is shown in reading order too."""
    return ("tokens",) if places == SCATTERED else ()


def _beside_a_reservation(words: Sequence[str]) -> CountMore:
    in_one_run = reservation(max(NUM_RESERVED, len(words)), words)

    def count(state: CacheState) -> dict[str, Any]:
        return {"in_one_run": waste(in_one_run.at(usage_of(state).num_tokens_written))}

    return count


@memoize(maxsize=64)
def pages(words: tuple[str, ...], block_size: int, num_prompt_words: int, places: str = IN_ORDER) -> Picture:
    """Values: tokens written: 0, the prompt, then one more each."""
    free_order = _scattered(words, block_size) if places == SCATTERED else ()
    num_prompt_words = min(num_prompt_words, len(words))
    scene = growth(words, block_size, num_prompt_words=num_prompt_words, free_order=free_order)
    texts = FrameTexts(
        label=Plural("value", "{n} token", "{n} tokens"),
        figures=(
            Figure(N_("Tokens stored"), "{usage.num_tokens_written}"),
            Figure(N_("Blocks held"), "{usage.num_used_blocks}"),
            Figure(N_("Slots empty"), "{usage.num_empty_slots}"),
        ),
        captions=CAPTIONS,
        more=_beside_a_reservation(words),
    )
    return picture(scene, texts, _("One request in blocks"))


def _scattered(words: Sequence[str], block_size: int) -> list[int]:
    """An order for the free blocks in which neighbours rarely follow each other, as on a busy server."""
    num_blocks = blocks_for(len(words) + 1, block_size) + 1
    return Random(num_blocks).sample(range(num_blocks), num_blocks)


def comparison(picture: Picture, value: int) -> pd.DataFrame:
    """The same tokens in one reservation and on pages."""
    facts = picture.facts(value)
    in_one_run, on_pages = facts["in_one_run"], facts["waste"]
    blocks = counted(
        "{n} block of {usage.block_size}", "{n} blocks of {usage.block_size}", facts["usage"].num_used_blocks, **facts
    )
    rows = ((_("one region of {in_one_run.num_held}").format(**facts), in_one_run), (blocks, on_pages))
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
