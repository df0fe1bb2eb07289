"""Questions of "Memory across a batch"."""

from __future__ import annotations

from random import Random

from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many, listed
from engine.said import said
from engine.scenes.batch import NUM_RESERVED, Batch, batch, blocks_side_by_side
from engine.scenes.scripted_run import blocks_for
from engine.usage import usage_of
from engine.waste import percent_fewer_held, waste


def slots_held(random: Random) -> Draft:
    lengths, block_size, both = _draw(random)
    number = len(lengths)
    contiguous, paged = waste(both.contiguous.at(number)), waste(both.paged.at(number))
    return Draft(
        kind="slots held",
        prompt=said(
            "Requests of {lengths} tokens run together.\n"
            "Blocks have {block_size} slots.\n"
            "How many slots do their blocks have in all?",
            lengths=listed(lengths),
            block_size=block_size,
        ),
        right=how_many(paged.num_held, "slot"),
        because="Each request rounds up to whole blocks of its own.",
        wrong=(
            Wrong(
                how_many(paged.token_states, "slot"),
                "The last block of a request is seldom full.",
                Misconception.WASTES_NOTHING,
            ),
            Wrong(
                how_many(blocks_for(paged.token_states, block_size) * block_size, "slot"),
                "Different texts never share a block: each request has a last block of its own.",
                Misconception.BLOCKS_ARE_MIXED,
            ),
            Wrong(
                how_many(contiguous.num_held, "slot"),
                said(
                    "This is {num_reserved} slots for each request, as reservations would hold.",
                    num_reserved=NUM_RESERVED,
                ),
                Misconception.AS_RESERVED,
            ),
        ),
        controls=_controls(lengths, block_size),
        scene=both.paged,
        value=number,
    )


def percent_saved(random: Random) -> Draft:
    lengths, block_size, both = _draw(random)
    number = len(lengths)
    contiguous, paged = both.contiguous.at(number), both.paged.at(number)
    saved = percent_fewer_held(paged, contiguous)
    counted = waste(paged)
    return Draft(
        kind="percent saved",
        prompt=said(
            "Requests of {lengths} tokens run together.\n"
            "Reservations of {num_reserved} slots each would hold {reserved} slots.\n"
            "Blocks of {block_size} hold {held} slots.\n"
            "What does paging do to the keys and values?",
            lengths=listed(lengths),
            num_reserved=NUM_RESERVED,
            reserved=waste(contiguous).num_held,
            block_size=block_size,
            held=counted.num_held,
        ),
        right=said(
            "Nothing: the same {paged.token_states} tokens, {saved:.0f} % fewer slots held", paged=counted, saved=saved
        ),
        because="Fewer slots stand empty; what is stored stays the same.",
        wrong=(
            Wrong(
                said("It compresses them by {saved:.0f} %", saved=saved),
                "Each token takes one slot in both layouts: only empty slots become fewer.",
                Misconception.COMPRESSES,
            ),
            Wrong(
                said("It approximates them with {saved:.0f} % less memory", saved=saved),
                "Attention reads the same keys and values and gives the same result.",
                Misconception.APPROXIMATES,
            ),
            Wrong(
                said("It drops the oldest {saved:.0f} %", saved=saved),
                "Every token of every request is still stored.",
                Misconception.ONLY_NEWEST,
            ),
        ),
        controls=_controls(lengths, block_size),
        scene=both.paged,
        value=number,
    )


def gauge_at_100_percent(random: Random) -> Draft:
    block_size = random.choice((8, 16))
    lengths = [block_size + random.randint(1, block_size // 2) for _ in range(random.randint(2, 4))]
    scene = blocks_side_by_side(lengths, block_size, sum(blocks_for(length, block_size) for length in lengths))
    usage = usage_of(scene.at(len(lengths)))
    return Draft(
        kind="gauge at 100 percent",
        prompt=said(
            "A pool has {usage.num_blocks} blocks of {block_size} slots.\n"
            "Requests of {lengths} tokens run, and the gauge of used blocks shows {percent:.0f} %.\n"
            "How many slots hold keys and values?",
            usage=usage,
            block_size=block_size,
            lengths=listed(lengths),
            percent=100 * usage.block_fraction,
        ),
        right=said("{usage.num_written_slots} of {usage.num_slots}", usage=usage),
        because="The gauge counts blocks: a block with one token in it counts as used.",
        wrong=(
            Wrong(
                said("{usage.num_slots} of {usage.num_slots}", usage=usage),
                "The gauge counts blocks, and the last block of each request has empty slots.",
                Misconception.FULL_GAUGE,
            ),
            Wrong(
                said("{usage.num_empty_slots} of {usage.num_slots}", usage=usage),
                "These are the empty slots.",
                Misconception.MIXED_UP,
            ),
            Wrong(
                said("{usage.num_used_blocks} of {usage.num_slots}", usage=usage),
                "This counts blocks.",
                Misconception.BLOCKS_ARE_SLOTS,
            ),
        ),
        controls={"lengths": listed(lengths), "block_size": block_size, "num_blocks": usage.num_blocks},
        scene=scene,
        value=len(lengths),
    )


def _draw(random: Random) -> tuple[list[int], int, Batch]:
    """Four lengths whose last blocks are not full, and that hold less in blocks than in reservations."""
    block_size = random.choice((4, 5, 8))
    lengths = random.sample([length for length in range(3, 17) if length % block_size], 4)
    return lengths, block_size, batch(lengths, NUM_RESERVED, block_size)


def _controls(lengths: list[int], block_size: int) -> dict[str, int | str]:
    return {"lengths": listed(lengths), "num_reserved": NUM_RESERVED, "block_size": block_size}


KINDS = (slots_held, percent_saved, gauge_at_100_percent)
