"""Questions of "Share matching prefixes"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.sharing.scene import ANSWERS, asked_again, two_answers
from course.words import passage
from engine.i18n import _, blocks_counted, counted, tokens_counted
from engine.trace.events import BlockCopied
from engine.trace.usage import usage_of


def blocks_of_two_answers(random: Random) -> Draft:
    """How many blocks two answers to one prompt hold."""
    block_size = random.randint(3, 6)
    num_prompt = block_size * random.randint(2, 4)
    scene = two_answers(passage(num_prompt), ANSWERS, block_size)
    value = random.randint(1, min(block_size, *map(len, ANSWERS)))
    usage = usage_of(scene.at(value))
    used, private = usage.num_used_blocks, usage.num_used_blocks - usage.num_shared_blocks
    return Draft(
        prompt=counted(
            "Blocks have {block_size} slots.\n"
            "Two answers share one prompt of {num_prompt} tokens.\n"
            "Each answer has {n} token in the cache.\n"
            "How many blocks do both use together?",
            "Blocks have {block_size} slots.\n"
            "Two answers share one prompt of {num_prompt} tokens.\n"
            "Each answer has {n} tokens in the cache.\n"
            "How many blocks do both use together?",
            value,
            block_size=block_size,
            num_prompt=num_prompt,
        ),
        right=blocks_counted(used),
        because=_(
            "The prompt's blocks are stored once, and both block tables point to them; each answer adds private blocks."
        ),
        wrong=(
            Wrong(
                blocks_counted(used + usage.num_copies_avoided),
                _("Sharing copies nothing: both block tables point to the same blocks."),
                Misconception.SHARING_COPIES,
            ),
            Wrong(
                blocks_counted(usage.num_shared_blocks + private // 2),
                _("The answers differ, so each needs a private block."),
                Misconception.BLOCKS_ARE_MIXED,
            ),
            Wrong(
                blocks_counted(usage.num_shared_blocks),
                _("The answers must be stored too, and the prompt's blocks are full."),
                Misconception.NEVER_COPIES,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size, "words": value},
        scene=scene,
        value=value,
    )


def blocks_copied(random: Random) -> Draft:
    """How many blocks are copied on write."""
    block_size = random.randint(3, 6)
    num_prompt = block_size * random.randint(2, 4) + random.choice((0, random.randint(1, block_size - 1)))
    scene = two_answers(passage(num_prompt), ANSWERS, block_size)
    num_copies = scene.at(1).counters.num_copies
    num_shared = usage_of(scene.at(0)).num_shared_blocks
    at_edge = num_copies == 0
    return Draft(
        prompt=_(
            "Blocks have {block_size} slots.\n"
            "A request of {num_prompt} tokens forks into two answers.\n"
            "Then each answer writes its first token.\n"
            "How many blocks are copied?"
        ).format(block_size=block_size, num_prompt=num_prompt),
        right=blocks_counted(num_copies),
        because=(
            _("The prompt ends at a block boundary, so both continue in new blocks.")
            if at_edge
            else _(
                "The first to write copies the partly filled block; the other then is its only user and "
                "writes in place."
            )
        ),
        wrong=(
            *_wrong_copies(at_edge),
            Wrong(
                blocks_counted(num_shared),
                _("A fork shares all blocks and copies none; only a block that is written into is copied."),
                Misconception.SHARING_COPIES,
            ),
            Wrong(
                blocks_counted(2 * num_shared),
                _("A fork shares all blocks and copies none, for both answers."),
                Misconception.SHARING_COPIES,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size, "words": 1},
        scene=scene,
        value=1,
    )


def slots_copied(random: Random) -> Draft:
    """How many slots a copy on write copies."""
    block_size = random.randint(4, 7)
    num_prompt = block_size * random.randint(1, 3) + random.randint(1, block_size - 1)
    scene = two_answers(passage(num_prompt), ANSWERS, block_size)
    copied = sum(event.num_slots for event in scene.trace if isinstance(event, BlockCopied))
    return Draft(
        prompt=_(
            "Blocks have {block_size} slots.\n"
            "A request of {num_prompt} tokens forks into two answers.\n"
            "Then each answer writes its first token.\n"
            "How many tokens have their keys and values copied?"
        ).format(block_size=block_size, num_prompt=num_prompt),
        right=tokens_counted(copied),
        because=_("Only the partly filled block is copied, and these are the tokens in it."),
        wrong=(
            Wrong(
                tokens_counted(num_prompt),
                _("Full blocks stay shared: nothing is written into them."),
                Misconception.SHARING_COPIES,
            ),
            Wrong(
                tokens_counted(2 * copied),
                _("One answer copies; the other then is the only user of the old block and writes in place."),
                Misconception.BOTH_COPY,
            ),
            Wrong(
                tokens_counted(0),
                _("Without a copy, both would write different tokens into the same slot."),
                Misconception.NEVER_COPIES,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size, "words": 1},
        scene=scene,
        value=1,
    )


def tokens_computed_again(random: Random) -> Draft:
    """How many tokens a second request computes after a prefix cache hit."""
    block_size = random.randint(3, 6)
    num_prompt = block_size * random.randint(2, 4) + random.randint(1, block_size - 1)
    scene = asked_again(passage(num_prompt), ANSWERS[0], block_size)
    value = len(ANSWERS[0]) + 1
    hits = scene.at(value).counters.prefix_cache_hits
    return Draft(
        prompt=_(
            "Blocks have {block_size} slots.\n"
            "A request with a prompt of {num_prompt} tokens has ended, and its blocks are free.\n"
            "None of them has been evicted when the same prompt arrives again.\n"
            "How many tokens of the prompt must be computed?"
        ).format(block_size=block_size, num_prompt=num_prompt),
        right=tokens_counted(num_prompt - hits),
        because=_(
            "Full blocks are found in the prefix cache; the tokens of the last, partly filled block are computed again."
        ),
        wrong=(
            Wrong(
                tokens_counted(num_prompt),
                _("A freed block keeps its content until it is allocated for other tokens."),
                Misconception.FREED_IS_ERASED,
            ),
            Wrong(
                tokens_counted(0),
                _("Only full blocks are cached, and the last token must be computed to sample the next."),
                Misconception.NOTHING_TO_COMPUTE,
            ),
            Wrong(
                tokens_counted(hits),
                _("These are the tokens found in the cache, which need no computing."),
                Misconception.MIXED_UP,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size},
        scene=scene,
        value=value,
    )


def _wrong_copies(at_edge: bool) -> tuple[Wrong, ...]:
    if at_edge:
        return (
            Wrong(
                blocks_counted(1),
                _("No shared block is written here: the last one is full."),
                Misconception.ALWAYS_COPIES,
            ),
        )
    return (
        Wrong(
            blocks_counted(2),
            _("After the first copy, the other answer is the only user of the old block and writes in place."),
            Misconception.BOTH_COPY,
        ),
        Wrong(
            blocks_counted(0),
            _("Without a copy, both would write different tokens into the same slot of the shared block."),
            Misconception.NEVER_COPIES,
        ),
    )


KINDS = (blocks_of_two_answers, blocks_copied, slots_copied, tokens_computed_again)
