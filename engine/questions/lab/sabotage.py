"""Questions of "Sabotage"."""

from __future__ import annotations

from random import Random

from engine.engine import Engine
from engine.events import SlotsWritten
from engine.lab.saboteurs import SkipCopyOnWrite
from engine.lab.shuffled_memory import table_found
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many, listed
from engine.said import said
from engine.scenes.scripted_run import add, play, scene_config
from engine.scenes.words import passage
from engine.scripted import scripted_engine


def swapped_entries(random: Random) -> Draft:
    size, num_full = random.randint(2, 6), random.randint(2, 3)
    written = size * num_full + random.randint(1, size - 1)
    state = _engine(random, written, size).snapshot()
    table = state.sequences["A"].block_table
    before = listed(table)
    table[0], table[-1] = table[-1], table[0]
    found = table_found(state, "A")
    return Draft(
        kind="swapped entries",
        prompt=said(
            "A has {written} tokens in blocks of {size}, and the block table {before}.\n"
            "The first and the last entry change places.\n"
            "No key or value moves.\n"
            "For how many of A's tokens does the table lead to a wrong place?",
            written=written,
            size=size,
            before=before,
        ),
        right=how_many(found.num_wanted - found.num_right, "token"),
        because="All tokens of the first block and all of the last: each is looked for in the other's block.",
        wrong=(
            Wrong(
                how_many(0, "token"),
                "Nothing moved, and still it is the table that says where to look.",
                Misconception.MEMORY_KNOWS,
            ),
            Wrong(
                how_many(2, "token"),
                "Two entries, and each of them stands for a whole block of tokens.",
                Misconception.BLOCKS_ARE_SLOTS,
            ),
            Wrong(
                how_many(written, "token"),
                "The entries in between still lead where they should.",
                Misconception.ALL_OR_NOTHING,
            ),
        ),
        controls={"written": written, "size": size},
    )


def skipped_copy(random: Random) -> Draft:
    size = random.randint(3, 6)
    num_shared = size * random.randint(1, 2) + random.randint(1, size - 1)
    engine = _engine(random, num_shared, size, n=2)
    SkipCopyOnWrite().strike(engine)
    engine.step()
    slots = {slot for event in _writes(engine) for slot in event.slots}
    return Draft(
        kind="skipped copy",
        prompt=said(
            "Two samples share {num_shared} tokens in blocks of {size}.\n"
            "Each chooses a next token of its own.\n"
            "By mistake nobody copies the last block, and both write on in it.\n"
            "How many slots do these two tokens get?",
            num_shared=num_shared,
            size=size,
        ),
        right=how_many(len(slots), "slot"),
        because="Same table, same position, same slot: who writes last overwrites the other's token.",
        wrong=(
            Wrong(
                how_many(2, "slot"),
                "Both tables name the same block, and both tokens have the same place in it.",
                Misconception.NEVER_COPIES,
            ),
            Wrong(
                how_many(0, "slot"),
                "Nothing in memory forbids it. A reference count protects only when somebody asks for it.",
                Misconception.MEMORY_KNOWS,
            ),
            Wrong(
                how_many(num_shared % size + 1, "slot"),
                "What the block held already is not written again.",
                Misconception.SHARING_COPIES,
            ),
        ),
        controls={"num_shared": num_shared, "size": size},
    )


def _engine(random: Random, num_prompt: int, size: int, n: int = 1) -> Engine:
    """The prompt of A is written, in blocks somewhere in the pool; each of `n` samples has chosen its first token."""
    num_blocks = n * (num_prompt // size + 2)
    config = scene_config(
        block_size=size,
        num_blocks=num_blocks,
        longest=num_prompt + size,
        free_order=random.sample(range(num_blocks), num_blocks),
    )
    engine = scripted_engine(config, {})
    add(engine, passage(num_prompt), num_output_tokens=size, n=n)
    play(engine, 1)
    return engine


def _writes(engine: Engine) -> list[SlotsWritten]:
    """Of the last step."""
    return [event for event in engine.trace.events_of(engine.trace.num_steps) if isinstance(event, SlotsWritten)]


KINDS = (swapped_entries, skipped_copy)
