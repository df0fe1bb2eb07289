"""Questions of "Shuffle memory, same words"."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong, listed
from course.scripted_engine import add, play, scene_config, scripted_engine
from course.shuffle.experiment import moving_permutation
from course.shuffle.memory import RowFound, move_contents, table_found
from course.words import passage
from engine.engine import Engine
from engine.i18n import N_, _
from engine.trace.event_base import token_span

NUM_BLOCKS, NUM_HELD = 6, 3
NOTHING = N_("Nothing: that block was never written")


def table_after_the_move(random: Random) -> Draft:
    """The block table after a permutation of the blocks."""
    before: list[int] = []
    after: list[int] = []
    while after == sorted(after):
        engine, permutation = _draw(random)
        before = engine.snapshot().sequences["A"].block_table
        engine.shuffle_blocks(permutation)
        after = engine.snapshot().sequences["A"].block_table
    return Draft(
        prompt=_(
            "A's block table is {before}.\n"
            "Every block is moved: {moves}.\n"
            "The block tables are updated.\n"
            "What is A's block table now?"
        ).format(before=listed(before), moves=_in_words(permutation)),
        right=listed(after),
        because=_("Each entry becomes the new place of its block; the order stays that of the text."),
        wrong=(
            Wrong(
                listed(before),
                _("These are the old places, which now hold other contents."),
                Misconception.POSITION_IS_PLACE,
            ),
            Wrong(
                listed(sorted(after)),
                _("The table is in the order of the text, whatever the block numbers are."),
                Misconception.PHYSICAL_ORDER,
            ),
            Wrong(
                listed([permutation.index(block_id) for block_id in before]),
                _("These are the blocks whose contents were moved to A's old places."),
                Misconception.MEMORY_KNOWS,
            ),
        ),
        controls={"before": listed(before), "permutation": listed(permutation)},
    )


def what_the_table_finds(random: Random) -> Draft:
    """What an old block table leads to after memory alone was permuted."""
    engine, permutation = _draw(random)
    state = engine.snapshot()
    move_contents(state, permutation)
    row = random.choice(table_found(state, "A").rows)
    size, index = state.block_size, row.logical_index
    return Draft(
        prompt=_(
            "A's block table is {table}, with {size} tokens in each block.\n"
            "The contents of every block are moved: {moves}.\n"
            "No block table is updated.\n"
            "What does A find in block {block_id}, where it expects its {wanted}?"
        ).format(
            table=listed(state.sequences["A"].block_table),
            size=size,
            moves=_in_words(permutation),
            block_id=row.block_id,
            wanted=_tokens(index, size),
        ),
        right=_found(row, size),
        because=_("The entry still points to the old place, so whatever was moved there is read."),
        wrong=(
            Wrong(
                _own(index, size),
                _("Those keys and values are elsewhere now, and only the block table could point to them."),
                Misconception.MEMORY_KNOWS,
            ),
            Wrong(_(NOTHING), _("Tokens of A were moved there."), Misconception.FREED_IS_ERASED),
            *(
                Wrong(
                    _own(other, size),
                    _("Follow what moves to this block, not what moves away from it."),
                    Misconception.POSITION_IS_PLACE,
                )
                for other in range(NUM_HELD)
                if other != index
            ),
        ),
        controls={
            "table": listed(state.sequences["A"].block_table),
            "permutation": listed(permutation),
            "block": row.block_id,
            "size": size,
        },
    )


def _draw(random: Random) -> tuple[Engine, tuple[int, ...]]:
    """An engine with one request in NUM_HELD full blocks somewhere in the pool, and a move in which no block stays."""
    size = random.randint(2, 5)
    words = passage(size * NUM_HELD)
    places = random.sample(range(NUM_BLOCKS), NUM_BLOCKS)
    config = scene_config(block_size=size, num_blocks=NUM_BLOCKS, longest=len(words) + 1, free_order=places)
    engine = scripted_engine(config, {})
    add(engine, words, num_output_tokens=1)
    play(engine, 1)
    return engine, moving_permutation(NUM_BLOCKS, random.randrange(10_000))


def _in_words(permutation: Sequence[int]) -> str:
    return ", ".join(f"{old} to {new}" for old, new in enumerate(permutation))


def _found(row: RowFound, size: int) -> str:
    first = row.found[0]
    return _(NOTHING) if first is None else _own(first.position // size, size)


def _own(index: int, size: int) -> str:
    return _("Its {tokens}").format(tokens=_tokens(index, size))


def _tokens(index: int, size: int) -> str:
    return token_span(index * size, size)


KINDS = (table_after_the_move, what_the_table_finds)
