"""Questions of "Shuffle memory, same words"."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from engine.engine import Engine
from engine.event_base import span
from engine.lab.shuffle import moving_permutation
from engine.lab.shuffled_memory import RowFound, move_contents, table_found
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import listed
from engine.said import said
from engine.scenes.scripted_run import add, play, scene_config
from engine.scenes.words import passage
from engine.scripted import scripted_engine

NUM_BLOCKS, NUM_HELD = 6, 3
NOTHING = "Nothing: that block was never written"


def table_after_the_move(random: Random) -> Draft:
    before: list[int] = []
    after: list[int] = []
    while after == sorted(after):
        engine, permutation = _draw(random)
        before = engine.snapshot().sequences["A"].block_table
        engine.shuffle_blocks(permutation)
        after = engine.snapshot().sequences["A"].block_table
    return Draft(
        kind="table after the move",
        prompt=said(
            "A's block table is {before}.\n"
            "Every block changes its place: {moves}.\n"
            "The tables follow.\n"
            "What is A's block table now?",
            before=listed(before),
            moves=_in_words(permutation),
        ),
        right=listed(after),
        because="Each entry becomes the new place of the block it named, and the order stays that of the text.",
        wrong=(
            Wrong(
                listed(before),
                "These are the old places, where other contents lie now.",
                Misconception.POSITION_IS_PLACE,
            ),
            Wrong(
                listed(sorted(after)),
                "The table is in the order of the text, whatever the numbers of the blocks are.",
                Misconception.PHYSICAL_ORDER,
            ),
            Wrong(
                listed([permutation.index(block_id) for block_id in before]),
                "These are the blocks whose contents came to A's old places.",
                Misconception.MEMORY_KNOWS,
            ),
        ),
        controls={"before": listed(before), "permutation": listed(permutation)},
    )


def what_the_table_finds(random: Random) -> Draft:
    engine, permutation = _draw(random)
    state = engine.snapshot()
    move_contents(state, permutation)
    row = random.choice(table_found(state, "A").rows)
    size, index = state.block_size, row.logical_index
    return Draft(
        kind="what the table finds",
        prompt=said(
            "A's block table is {table}, with {size} tokens in each block.\n"
            "Every block's contents change places: {moves}.\n"
            "No table is told.\n"
            "What does A find in block {block_id}, where it looks for its {wanted}?",
            table=listed(state.sequences["A"].block_table),
            size=size,
            moves=_in_words(permutation),
            block_id=row.block_id,
            wanted=_tokens(index, size),
        ),
        right=_found(row, size),
        because="The entry still names the old place, and whatever was moved there is read.",
        wrong=(
            Wrong(
                _own(index, size),
                "Those keys and values lie elsewhere now, and nothing in memory leads to them but the table.",
                Misconception.MEMORY_KNOWS,
            ),
            Wrong(NOTHING, "Something of A's was moved there.", Misconception.FREED_IS_ERASED),
            *(
                Wrong(
                    _own(other, size),
                    "Follow what moves to this block, not what moves away from it.",
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
    return NOTHING if first is None else _own(first.position // size, size)


def _own(index: int, size: int) -> str:
    return f"Its {_tokens(index, size)}"


def _tokens(index: int, size: int) -> str:
    return span(index * size, size, "token")


KINDS = (table_after_the_move, what_the_table_finds)
