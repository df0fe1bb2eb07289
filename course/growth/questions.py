"""Questions of "Add pages as the request grows"."""

from __future__ import annotations

from random import Random

from course.growth.scene import growth
from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.scripted_engine import blocks_for
from course.words import passage
from engine.i18n import _, blocks_counted, counted, slots_counted, tokens_counted
from engine.trace.usage import usage_of


def blocks_held(random: Random) -> Draft:
    """How many blocks a request of a given length holds."""
    num_tokens, block_size = _draw(random)
    scene = growth(passage(num_tokens), block_size)
    usage = usage_of(scene.at(num_tokens))
    held = usage.num_used_blocks
    return Draft(
        prompt=_(
            "Each block has {block_size}.\nA request has {num_tokens} in the cache.\nHow many blocks does it hold?"
        ).format(
            block_size=slots_counted(block_size),
            num_tokens=tokens_counted(num_tokens),
        ),
        right=blocks_counted(held),
        because=_("A block is allocated when a token needs it, and only the last one may be partly filled."),
        wrong=(
            Wrong(
                blocks_counted(held + 1),
                _("The next block is allocated when a token needs it, not before."),
                Misconception.BLOCK_AHEAD,
            ),
            Wrong(
                blocks_counted(num_tokens // block_size),
                _("The partly filled block belongs to the request as well."),
                Misconception.STARTED_IS_FREE,
            ),
            Wrong(
                blocks_counted(blocks_for(blocks_for(num_tokens, 2), block_size)),
                _("Paging does not compress anything: each token still takes one slot."),
                Misconception.COMPRESSES,
            ),
        ),
        controls={"block_size": block_size, "tokens": num_tokens},
        scene=scene,
        value=num_tokens,
    )


def empty_slots(random: Random) -> Draft:
    """How many slots of its last block are empty."""
    num_tokens, block_size = _draw(random)
    scene = growth(passage(num_tokens), block_size)
    usage = usage_of(scene.at(num_tokens))
    empty = usage.num_empty_slots
    return Draft(
        prompt=_(
            "Each block has {block_size}.\n"
            "A request has {num_tokens} in the cache.\n"
            "How many slots of its blocks are empty?"
        ).format(
            block_size=slots_counted(block_size),
            num_tokens=tokens_counted(num_tokens),
        ),
        right=slots_counted(empty),
        because=_("Only the last block has empty slots: the others are full."),
        wrong=(
            Wrong(
                slots_counted(empty * usage.num_used_blocks),
                _("Only the last block has empty slots, however long the request is."),
                Misconception.TAIL_GROWS,
            ),
            Wrong(slots_counted(0), _("The last block is rarely full."), Misconception.WASTES_NOTHING),
            Wrong(
                slots_counted(empty + block_size),
                _("The next block is allocated when a token needs it, not before."),
                Misconception.BLOCK_AHEAD,
            ),
        ),
        controls={"block_size": block_size, "tokens": num_tokens},
        scene=scene,
        value=num_tokens,
    )


def most_ever_empty(random: Random) -> Draft:
    """The most slots that a growing request ever leaves empty."""
    block_size = random.randint(3, 8)
    num_tokens = block_size * random.randint(3, 6)
    scene = growth(passage(num_tokens), block_size)
    empties = {value: usage_of(scene.at(value)).num_empty_slots for value in scene.values}
    value = max(empties, key=lambda v: (empties[v], v))
    most, num_blocks = empties[value], usage_of(scene.at(num_tokens)).num_used_blocks
    return Draft(
        prompt=counted(
            "Each block has {n} slot.\n"
            "A request grows from 1 token to {num_tokens}, one token at a time.\n"
            "What is the largest number of empty slots it has at any moment?",
            "Each block has {n} slots.\n"
            "A request grows from 1 token to {num_tokens}, one token at a time.\n"
            "What is the largest number of empty slots it has at any moment?",
            block_size,
            num_tokens=num_tokens,
        ),
        right=slots_counted(most),
        because=_("Most slots are empty when a new block holds one token: block_size - 1, whatever the length."),
        wrong=(
            Wrong(
                slots_counted(most * num_blocks),
                _("Earlier blocks are full, so waste does not grow with length."),
                Misconception.TAIL_GROWS,
            ),
            Wrong(
                slots_counted(block_size),
                _("A block is never allocated before a token needs it, so at least one slot is filled."),
                Misconception.BLOCK_AHEAD,
            ),
            Wrong(
                slots_counted(0),
                _("A newly allocated block is nearly empty."),
                Misconception.WASTES_NOTHING,
            ),
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
