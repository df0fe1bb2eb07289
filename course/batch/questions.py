"""Questions of "Memory across a batch"."""

from __future__ import annotations

from random import Random

from course.batch.scene import NUM_RESERVED, BatchLayouts, batch, blocks_side_by_side
from course.misconceptions import Misconception
from course.question import Draft, Wrong, listed
from course.scripted_engine import blocks_for
from engine.baselines.fragmentation import percent_fewer_held, waste
from engine.i18n import _, slots_counted
from engine.trace.event_base import percentage
from engine.trace.usage import usage_of


def slots_held(random: Random) -> Draft:
    """How many slots the batch holds in blocks."""
    lengths, block_size, both = _draw(random)
    number = len(lengths)
    contiguous, paged = waste(both.contiguous.at(number)), waste(both.paged.at(number))
    return Draft(
        prompt=_(
            "Requests of {lengths} tokens run at the same time.\n"
            "Blocks have {block_size} slots.\n"
            "How many slots do all their blocks have together?"
        ).format(lengths=listed(lengths), block_size=block_size),
        right=slots_counted(paged.num_held),
        because=_("Each request's length is rounded up to whole blocks."),
        wrong=(
            Wrong(
                slots_counted(paged.token_states),
                _("The last block of a request is rarely full."),
                Misconception.WASTES_NOTHING,
            ),
            Wrong(
                slots_counted(blocks_for(paged.token_states, block_size) * block_size),
                _("Two different texts never fill one block together: each request has its own last block."),
                Misconception.BLOCKS_ARE_MIXED,
            ),
            Wrong(
                slots_counted(contiguous.num_held),
                _("This is {num_reserved} slots per request, which is what contiguous reservations would hold.").format(
                    num_reserved=NUM_RESERVED
                ),
                Misconception.AS_RESERVED,
            ),
        ),
        controls=_controls(lengths, block_size),
        scene=both.paged,
        value=number,
    )


def percent_saved(random: Random) -> Draft:
    """How many percent fewer slots blocks hold than reservations."""
    lengths, block_size, both = _draw(random)
    number = len(lengths)
    contiguous, paged = both.contiguous.at(number), both.paged.at(number)
    saved = percent_fewer_held(paged, contiguous)
    held = waste(paged)
    return Draft(
        prompt=_(
            "Requests of {lengths} tokens run at the same time.\n"
            "Contiguous reservations of {num_reserved} slots each would hold {reserved} slots.\n"
            "Blocks of {block_size} hold {held} slots.\n"
            "What does paging do to the keys and values?"
        ).format(
            lengths=listed(lengths),
            num_reserved=NUM_RESERVED,
            reserved=waste(contiguous).num_held,
            block_size=block_size,
            held=held.num_held,
        ),
        right=_("Nothing: the same {paged.token_states} tokens, {saved} fewer slots held").format(
            paged=held, saved=f"{percentage(saved)} %"
        ),
        because=_("Fewer slots are empty; what is stored stays the same."),
        wrong=(
            Wrong(
                _("It compresses them by {saved}").format(saved=f"{percentage(saved)} %"),
                _("Each token takes one slot in both layouts; there are only fewer empty slots."),
                Misconception.COMPRESSES,
            ),
            Wrong(
                _("It approximates them with {saved} less memory").format(saved=f"{percentage(saved)} %"),
                _("Attention reads the same keys and values and gives the same result."),
                Misconception.APPROXIMATES,
            ),
            Wrong(
                _("It drops the oldest {saved}").format(saved=f"{percentage(saved)} %"),
                _("Every token of every request is still stored."),
                Misconception.ONLY_NEWEST,
            ),
        ),
        controls=_controls(lengths, block_size),
        scene=both.paged,
        value=number,
    )


def gauge_at_100_percent(random: Random) -> Draft:
    """What a gauge of used blocks at 100 % says about the slots."""
    block_size = random.choice((8, 16))
    lengths = [block_size + random.randint(1, block_size // 2) for _index in range(random.randint(2, 4))]
    scene = blocks_side_by_side(lengths, block_size, sum(blocks_for(length, block_size) for length in lengths))
    usage = usage_of(scene.at(len(lengths)))
    return Draft(
        prompt=_(
            "A pool has {usage.num_blocks} blocks of {block_size} slots.\n"
            "Requests of {lengths} tokens are running, and KV cache usage is {percent}.\n"
            "How many slots hold keys and values?"
        ).format(
            usage=usage,
            block_size=block_size,
            lengths=listed(lengths),
            percent=f"{percentage(100 * usage.block_fraction)} %",
        ),
        right=_("{usage.num_written_slots} of {usage.num_slots}").format(usage=usage),
        because=_("Usage counts blocks, and a block with a single token counts as used."),
        wrong=(
            Wrong(
                _("{usage.num_slots} of {usage.num_slots}").format(usage=usage),
                _("Usage counts blocks, and the last block of each request has empty slots."),
                Misconception.FULL_GAUGE,
            ),
            Wrong(
                _("{usage.num_empty_slots} of {usage.num_slots}").format(usage=usage),
                _("These are the empty slots."),
                Misconception.MIXED_UP,
            ),
            Wrong(
                _("{usage.num_used_blocks} of {usage.num_slots}").format(usage=usage),
                _("This counts blocks, not slots."),
                Misconception.BLOCKS_ARE_SLOTS,
            ),
        ),
        controls={"lengths": listed(lengths), "block_size": block_size, "num_blocks": usage.num_blocks},
        scene=scene,
        value=len(lengths),
    )


def _draw(random: Random) -> tuple[list[int], int, BatchLayouts]:
    """Four lengths whose last blocks are not full, and that hold less in blocks than in reservations."""
    block_size = random.choice((4, 5, 8))
    lengths = random.sample([length for length in range(3, 17) if length % block_size], 4)
    return lengths, block_size, batch(lengths, NUM_RESERVED, block_size)


def _controls(lengths: list[int], block_size: int) -> dict[str, int | str]:
    return {"lengths": listed(lengths), "num_reserved": NUM_RESERVED, "block_size": block_size}


KINDS = (slots_held, percent_saved, gauge_at_100_percent)
