"""Questions of "Why didn't these share?"."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.scripted_engine import WordTokenizer
from course.why_not_shared.experiment import SharingAnswer, why_not_shared
from course.words import passage
from engine.i18n import _, blocks_counted, tokens_counted

ANOTHER_WORD = "zebra"


def one_word_differs(random: Random) -> Draft:
    """How many blocks two prompts share that differ in one word."""
    block_size, num_blocks = random.randint(3, 5), random.randint(4, 6)
    words = list(passage(block_size * num_blocks))
    position = random.randint(block_size, block_size * (num_blocks - 1) - 1)
    changed = [ANOTHER_WORD if at == position else word for at, word in enumerate(words)]
    shared = _asked(block_size, words, changed).num_shared_blocks
    return Draft(
        prompt=_(
            "Two prompts of {length} tokens each fill {num_blocks} blocks of {block_size}.\n"
            "They differ only in token {position}, counted from 0.\n"
            "The first has run.\n"
            "How many blocks does the second find in the prefix cache?"
        ).format(length=len(words), num_blocks=num_blocks, block_size=block_size, position=position),
        right=blocks_counted(shared),
        because=_("A block is found when all its tokens and all tokens before it are equal."),
        wrong=(
            Wrong(
                blocks_counted(num_blocks - 1),
                _("Keys and values depend on all tokens before them, so equal words after the difference do not help."),
                Misconception.EQUAL_TEXT_IS_SHARED,
            ),
            Wrong(
                blocks_counted(shared + 1),
                _("The block with the difference is not equal as a whole, and parts of blocks are not shared."),
                Misconception.PARTS_ARE_SHARED,
            ),
            Wrong(
                blocks_counted(0),
                _("The blocks before the difference are equal, and they are found."),
                Misconception.ALL_OR_NOTHING,
            ),
        ),
        controls={"block_size": block_size, "position": position},
    )


def asked_twice(random: Random) -> Draft:
    """How many blocks a prompt finds of itself when it is sent twice."""
    block_size = random.randint(3, 6)
    length = random.randint(2 * block_size, 5 * block_size)
    words = passage(length)
    found = _asked(block_size, words, words).num_shared_blocks * block_size
    return Draft(
        prompt=_(
            "A prompt of {length} tokens is sent twice, one after the other.\n"
            "Blocks have {block_size} slots.\n"
            "How many tokens does the second request find in the prefix cache?"
        ).format(length=length, block_size=block_size),
        right=tokens_counted(found),
        because=_(
            "Full blocks are found, but the last token is always computed: its logits are needed to "
            "sample the next one."
        ),
        wrong=(
            Wrong(
                tokens_counted(length),
                _("At least the last token must be computed, because its logits are needed to sample the next one."),
                Misconception.NOTHING_TO_COMPUTE,
            ),
            Wrong(
                tokens_counted(length - 1),
                _(
                    "Only whole blocks are found: a block that is not full, or that holds the last token, is "
                    "computed again."
                ),
                Misconception.PARTS_ARE_SHARED,
            ),
            Wrong(
                tokens_counted(0),
                _("The first request's blocks were freed, but they stay cached and can still be found."),
                Misconception.FREED_IS_ERASED,
            ),
        ),
        controls={"block_size": block_size, "length": length},
    )


def _asked(block_size: int, first: Sequence[str], second: Sequence[str]) -> SharingAnswer:
    return why_not_shared(WordTokenizer(), block_size, " ".join(first), " ".join(second))


KINDS = (one_word_differs, asked_twice)
