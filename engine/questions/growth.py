"""Questions of "Add pages as the request grows"."""

from __future__ import annotations

from random import Random

from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said
from engine.scenes.growth import growth
from engine.scenes.scripted_run import blocks_for
from engine.scenes.words import passage
from engine.usage import usage_of


def blocks_held(random: Random) -> Draft:
    num_tokens, block_size = _draw(random)
    scene = growth(passage(num_tokens), block_size)
    usage = usage_of(scene.at(num_tokens))
    held = usage.num_used_blocks
    return Draft(
        kind="blocks held",
        prompt=said(
            "Blocks have {block_size:slot}.\n"
            "A request has {num_tokens:token} in the cache.\n"
            "How many blocks does it hold?",
            block_size=block_size,
            num_tokens=num_tokens,
        ),
        right=how_many(held, "block"),
        because="A block is taken when the first token needs it, and only the last one may be partly filled.",
        wrong=(
            Wrong(
                how_many(held + 1, "block"),
                "The next block is taken when a token needs it, not before.",
                Misconception.BLOCK_AHEAD,
            ),
            Wrong(
                how_many(num_tokens // block_size, "block"),
                "The block that is partly filled belongs to the request too.",
                Misconception.STARTED_IS_FREE,
            ),
            Wrong(
                how_many(blocks_for(blocks_for(num_tokens, 2), block_size), "block"),
                "Paging makes nothing smaller: each token still takes a slot.",
                Misconception.COMPRESSES,
            ),
        ),
        controls={"block_size": block_size, "tokens": num_tokens},
        scene=scene,
        value=num_tokens,
    )


def empty_slots(random: Random) -> Draft:
    num_tokens, block_size = _draw(random)
    scene = growth(passage(num_tokens), block_size)
    usage = usage_of(scene.at(num_tokens))
    empty = usage.num_empty_slots
    return Draft(
        kind="empty slots",
        prompt=said(
            "Blocks have {block_size:slot}.\n"
            "A request has {num_tokens:token} in the cache.\n"
            "How many slots of its blocks are empty?",
            block_size=block_size,
            num_tokens=num_tokens,
        ),
        right=how_many(empty, "slot"),
        because="Only the last block has empty slots: the others are full.",
        wrong=(
            Wrong(
                how_many(empty * usage.num_used_blocks, "slot"),
                "Only the last block has empty slots, however long the request is.",
                Misconception.TAIL_GROWS,
            ),
            Wrong(how_many(0, "slot"), "The last block is seldom full.", Misconception.WASTES_NOTHING),
            Wrong(
                how_many(empty + block_size, "slot"),
                "The next block is taken when a token needs it, not before.",
                Misconception.BLOCK_AHEAD,
            ),
        ),
        controls={"block_size": block_size, "tokens": num_tokens},
        scene=scene,
        value=num_tokens,
    )


def most_ever_empty(random: Random) -> Draft:
    block_size = random.randint(3, 8)
    num_tokens = block_size * random.randint(3, 6)
    scene = growth(passage(num_tokens), block_size)
    empties = {value: usage_of(scene.at(value)).num_empty_slots for value in scene.values}
    value = max(empties, key=lambda v: (empties[v], v))
    most, num_blocks = empties[value], usage_of(scene.at(num_tokens)).num_used_blocks
    return Draft(
        kind="most ever empty",
        prompt=said(
            "Blocks have {block_size:slot}.\n"
            "A request grows from 1 token to {num_tokens}, one at a time.\n"
            "How many of its slots are empty at the worst moment?",
            block_size=block_size,
            num_tokens=num_tokens,
        ),
        right=how_many(most, "slot"),
        because="The worst moment is when a block was just taken and holds one token; length does not matter.",
        wrong=(
            Wrong(
                how_many(most * num_blocks, "slot"),
                "Earlier blocks are full, so waste does not add up with length.",
                Misconception.TAIL_GROWS,
            ),
            Wrong(
                how_many(block_size, "slot"),
                "A block is never taken before a token needs it, so one slot is always filled.",
                Misconception.BLOCK_AHEAD,
            ),
            Wrong(how_many(0, "slot"), "A block that was just taken is nearly empty.", Misconception.WASTES_NOTHING),
        ),
        controls={"block_size": block_size, "tokens": num_tokens},
        scene=scene,
        value=value,
    )


def _draw(random: Random) -> tuple[int, int]:
    """A length and a block size that leave empty slots in the last of at least two blocks."""
    block_size = random.randint(3, 8)
    full_blocks = random.randint(1, 5)
    return full_blocks * block_size + random.randint(1, block_size - 1), block_size


KINDS = (blocks_held, empty_slots, most_ever_empty)
