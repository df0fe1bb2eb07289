"""Questions of "Share matching prefixes"."""

from __future__ import annotations

from random import Random

from engine.events import BlockCopied
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said
from engine.scenes.sharing import ANSWERS, asked_again, two_answers
from engine.scenes.words import passage
from engine.usage import usage_of


def blocks_of_two_answers(random: Random) -> Draft:
    block_size = random.randint(3, 6)
    num_prompt = block_size * random.randint(2, 4)
    scene = two_answers(passage(num_prompt), ANSWERS, block_size)
    value = random.randint(1, min(block_size, *map(len, ANSWERS)))
    usage = usage_of(scene.at(value))
    used, private = usage.num_used_blocks, usage.num_used_blocks - usage.num_shared_blocks
    return Draft(
        kind="blocks of two answers",
        prompt=said(
            "Blocks have {block_size} slots.\n"
            "Two answers are written to one prompt of {num_prompt} tokens, which they share.\n"
            "Each answer has {num_words:token} in the cache.\n"
            "How many blocks do both hold together?",
            block_size=block_size,
            num_prompt=num_prompt,
            num_words=value,
        ),
        right=how_many(used, "block"),
        because="The blocks of the prompt are stored once and named by both tables; each answer adds its own.",
        wrong=(
            Wrong(
                how_many(used + usage.num_copies_avoided, "block"),
                "Sharing copies nothing: both tables name the same blocks.",
                Misconception.SHARING_COPIES,
            ),
            Wrong(
                how_many(usage.num_shared_blocks + private // 2, "block"),
                "Each answer goes its own way, so each needs a block of its own.",
                Misconception.BLOCKS_ARE_MIXED,
            ),
            Wrong(
                how_many(usage.num_shared_blocks, "block"),
                "The answers must be stored too, and the blocks of the prompt are full.",
                Misconception.NEVER_COPIES,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size, "words": value},
        scene=scene,
        value=value,
    )


def blocks_copied(random: Random) -> Draft:
    block_size = random.randint(3, 6)
    num_prompt = block_size * random.randint(2, 4) + random.choice((0, random.randint(1, block_size - 1)))
    scene = two_answers(passage(num_prompt), ANSWERS, block_size)
    num_copies = scene.at(1).counters.num_copies
    num_shared = usage_of(scene.at(0)).num_shared_blocks
    at_edge = num_copies == 0
    return Draft(
        kind="blocks copied",
        prompt=said(
            "Blocks have {block_size} slots.\n"
            "A request of {num_prompt} tokens forks into two answers.\n"
            "Then each answer writes its first token.\n"
            "How many blocks are copied?",
            block_size=block_size,
            num_prompt=num_prompt,
        ),
        right=how_many(num_copies, "block"),
        because=(
            "The prompt ends at the edge of a block, so both go on in new blocks."
            if at_edge
            else "The first to write copies the half-filled block; the other is then alone with it and writes in place."
        ),
        wrong=(
            *_wrong_copies(at_edge),
            Wrong(
                how_many(num_shared, "block"),
                "A fork shares all blocks and copies none; only a block that is written into is copied.",
                Misconception.SHARING_COPIES,
            ),
            Wrong(
                how_many(2 * num_shared, "block"),
                "A fork shares all blocks and copies none, for either answer.",
                Misconception.SHARING_COPIES,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size, "words": 1},
        scene=scene,
        value=1,
    )


def slots_copied(random: Random) -> Draft:
    block_size = random.randint(4, 7)
    num_prompt = block_size * random.randint(1, 3) + random.randint(1, block_size - 1)
    scene = two_answers(passage(num_prompt), ANSWERS, block_size)
    copied = sum(event.num_slots for event in scene.trace if isinstance(event, BlockCopied))
    return Draft(
        kind="slots copied",
        prompt=said(
            "Blocks have {block_size} slots.\n"
            "A request of {num_prompt} tokens forks into two answers.\n"
            "Then each answer writes its first token.\n"
            "Of how many tokens are the keys and values copied?",
            block_size=block_size,
            num_prompt=num_prompt,
        ),
        right=how_many(copied, "token"),
        because="Only the half-filled block is copied, and these are the tokens in it.",
        wrong=(
            Wrong(
                how_many(num_prompt, "token"),
                "Full blocks stay shared: nobody writes into them.",
                Misconception.SHARING_COPIES,
            ),
            Wrong(
                how_many(2 * copied, "token"),
                "One answer copies; the other is then alone with the old block and writes in place.",
                Misconception.BOTH_COPY,
            ),
            Wrong(
                how_many(0, "token"),
                "Both would write different tokens into one slot.",
                Misconception.NEVER_COPIES,
            ),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size, "words": 1},
        scene=scene,
        value=1,
    )


def tokens_computed_again(random: Random) -> Draft:
    block_size = random.randint(3, 6)
    num_prompt = block_size * random.randint(2, 4) + random.randint(1, block_size - 1)
    scene = asked_again(passage(num_prompt), ANSWERS[0], block_size)
    value = len(ANSWERS[0]) + 1
    hits = scene.at(value).counters.prefix_cache_hits
    return Draft(
        kind="tokens computed again",
        prompt=said(
            "Blocks have {block_size} slots.\n"
            "A request with a prompt of {num_prompt} tokens has ended, and its blocks are free.\n"
            "Nobody has taken them yet when the same prompt comes again.\n"
            "How many tokens of the prompt must be computed?",
            block_size=block_size,
            num_prompt=num_prompt,
        ),
        right=how_many(num_prompt - hits, "token"),
        because="Full blocks are found again by their content; what stood in the last, unfilled block is computed.",
        wrong=(
            Wrong(
                how_many(num_prompt, "token"),
                "A freed block keeps its content until it is taken for other tokens.",
                Misconception.FREED_IS_ERASED,
            ),
            Wrong(
                how_many(0, "token"),
                "Only full blocks can be found, and the last token must be computed to choose the next.",
                Misconception.NOTHING_TO_COMPUTE,
            ),
            Wrong(how_many(hits, "token"), "These are the tokens that need no computing.", Misconception.MIXED_UP),
        ),
        controls={"num_prompt": num_prompt, "block_size": block_size},
        scene=scene,
        value=value,
    )


def _wrong_copies(at_edge: bool) -> tuple[Wrong, ...]:
    if at_edge:
        return (
            Wrong(
                how_many(1, "block"),
                "Nobody writes into a shared block here: the last one is full.",
                Misconception.ALWAYS_COPIES,
            ),
        )
    return (
        Wrong(
            how_many(2, "block"),
            "After the first copy the other answer is alone with the old block and writes in place.",
            Misconception.BOTH_COPY,
        ),
        Wrong(
            how_many(0, "block"),
            "Both would write different tokens into one slot of the shared block.",
            Misconception.NEVER_COPIES,
        ),
    )


KINDS = (blocks_of_two_answers, blocks_copied, slots_copied, tokens_computed_again)
