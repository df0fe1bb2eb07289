"""Questions of "Why didn't these share?"."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from engine.lab.why_not_shared import SharingAnswer, why_not_shared
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said
from engine.scenes.words import passage
from engine.scripted import WordTokenizer

ANOTHER_WORD = "zebra"


def one_word_differs(random: Random) -> Draft:
    block_size, num_blocks = random.randint(3, 5), random.randint(4, 6)
    words = list(passage(block_size * num_blocks))
    position = random.randint(block_size, block_size * (num_blocks - 1) - 1)
    changed = [ANOTHER_WORD if at == position else word for at, word in enumerate(words)]
    shared = _asked(block_size, words, changed).num_shared_blocks
    return Draft(
        kind="one word differs",
        prompt=said(
            "Two prompts of {length} tokens fill {num_blocks} blocks of {block_size} each.\n"
            "They differ in token {position} only. (Tokens count from 0.)\n"
            "The first has run.\n"
            "How many blocks does the second find in the cache?",
            length=len(words),
            num_blocks=num_blocks,
            block_size=block_size,
            position=position,
        ),
        right=how_many(shared, "block"),
        because="A block is found when all its tokens are equal and all tokens before it are, too.",
        wrong=(
            Wrong(
                how_many(num_blocks - 1, "block"),
                "Keys and values depend on all tokens before them, so equal words behind the difference do not help.",
                Misconception.EQUAL_TEXT_IS_SHARED,
            ),
            Wrong(
                how_many(shared + 1, "block"),
                "The block with the difference is not equal as a whole, and there are no parts of blocks to share.",
                Misconception.PARTS_ARE_SHARED,
            ),
            Wrong(
                how_many(0, "block"),
                "What stands before the difference is the same, and is found.",
                Misconception.ALL_OR_NOTHING,
            ),
        ),
        controls={"block_size": block_size, "position": position},
    )


def asked_twice(random: Random) -> Draft:
    block_size = random.randint(3, 6)
    length = random.randint(2 * block_size, 5 * block_size)
    words = passage(length)
    found = _asked(block_size, words, words).num_shared_blocks * block_size
    return Draft(
        kind="asked twice",
        prompt=said(
            "A prompt of {length} tokens is asked twice, one after the other.\n"
            "Blocks have {block_size} slots.\n"
            "How many tokens does the second one find in the cache?",
            length=length,
            block_size=block_size,
        ),
        right=how_many(found, "token"),
        because="Full blocks are found, and the last token is always computed: its scores choose the next one.",
        wrong=(
            Wrong(
                how_many(length, "token"),
                "At least the last token must run, because its scores choose the next one.",
                Misconception.NOTHING_TO_COMPUTE,
            ),
            Wrong(
                how_many(length - 1, "token"),
                "Blocks are found whole: one that is not full, or holds the last token, is computed again.",
                Misconception.PARTS_ARE_SHARED,
            ),
            Wrong(
                how_many(0, "token"),
                "The blocks of the first were given back, and can still be found by their contents.",
                Misconception.FREED_IS_ERASED,
            ),
        ),
        controls={"block_size": block_size, "length": length},
    )


def _asked(block_size: int, first: Sequence[str], second: Sequence[str]) -> SharingAnswer:
    return why_not_shared(WordTokenizer(), block_size, " ".join(first), " ".join(second))


KINDS = (one_word_differs, asked_twice)
