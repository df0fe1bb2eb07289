"""Questions of "Sabotage"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong, listed
from course.sabotage.faults import SkipCopyOnWrite
from course.scripted_engine import add, play, scene_config, scripted_engine
from course.shuffle.memory import table_found
from course.words import passage
from engine.engine import Engine
from engine.i18n import _, slots_counted, tokens_counted
from engine.trace.events import SlotsWritten


def swapped_entries(random: Random) -> Draft:
    """Which tokens attention reads when two table entries are exchanged."""
    size, num_full = random.randint(2, 6), random.randint(2, 3)
    written = size * num_full + random.randint(1, size - 1)
    state = _engine(random, written, size).snapshot()
    table = state.sequences["A"].block_table
    before = listed(table)
    table[0], table[-1] = table[-1], table[0]
    found = table_found(state, "A")
    return Draft(
        prompt=_(
            "A has {written} tokens in blocks of {size}. Its block table is {before}.\n"
            "The first and the last entry are swapped.\n"
            "No key or value moves.\n"
            "For how many of A's tokens does the block table now point to a wrong place?"
        ).format(written=written, size=size, before=before),
        right=tokens_counted(found.num_wanted - found.num_right),
        because=_("All tokens of the first and the last block: each is looked up in the other block."),
        wrong=(
            Wrong(
                tokens_counted(0),
                _("Nothing moved in memory, but the table says where to look."),
                Misconception.MEMORY_KNOWS,
            ),
            Wrong(
                tokens_counted(2),
                _("Two entries are wrong, and each stands for a whole block of tokens."),
                Misconception.BLOCKS_ARE_SLOTS,
            ),
            Wrong(
                tokens_counted(written),
                _("The entries in between still point to the right blocks."),
                Misconception.ALL_OR_NOTHING,
            ),
        ),
        controls={"written": written, "size": size},
    )


def skipped_copy(random: Random) -> Draft:
    """What a sample reads when its sibling wrote into a shared block."""
    size = random.randint(3, 6)
    num_shared = size * random.randint(1, 2) + random.randint(1, size - 1)
    engine = _engine(random, num_shared, size, n=2)
    SkipCopyOnWrite().inject(engine)
    engine.step()
    slots = {slot for event in _writes(engine) for slot in event.slots}
    return Draft(
        prompt=_(
            "Two samples share {num_shared} tokens in blocks of {size}.\n"
            "Each samples its own next token.\n"
            "By mistake the last block is not copied, and both write into it.\n"
            "How many slots do these two tokens take?"
        ).format(num_shared=num_shared, size=size),
        right=slots_counted(len(slots)),
        because=_("Same block and same offset, so the same slot: the second write overwrites the first."),
        wrong=(
            Wrong(
                slots_counted(2),
                _("Both block tables point to the same block, and both tokens have the same offset in it."),
                Misconception.NEVER_COPIES,
            ),
            Wrong(
                slots_counted(0),
                _("Memory does not prevent it. A reference count protects a block only if the engine checks it."),
                Misconception.MEMORY_KNOWS,
            ),
            Wrong(
                slots_counted(num_shared % size + 1),
                _("What the block already holds is not written again."),
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
