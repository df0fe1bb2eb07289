"""Questions of "Keep pages in order"."""

from __future__ import annotations

from random import Random

from engine.questions.question import Draft, Misconception, Wrong
from engine.said import said
from engine.scenes.block_table import Story, block_table
from engine.scenes.scene import Scene
from engine.scenes.words import passage
from engine.usage import SlotAddress, TableEntry, address_of, block_table_of

NUM_BLOCKS = 9


def slot_of_a_token(random: Random) -> Draft:
    block_size, scene = _draw(random)
    value = scene.values[-1]
    position = random.randint(block_size, value - 1)
    frame = scene.at(value)
    address = address_of(frame, "A", position)
    return Draft(
        kind="slot of a token",
        prompt=said(
            "Blocks have {block_size} slots.\n"
            "The block table of a request is {table}.\n"
            "In which slot of memory are the keys and values of token {position}? (Count from 0.)",
            block_size=block_size,
            table=_numbers(block_table_of(frame, "A")),
            position=position,
        ),
        right=said("slot {slot}", slot=address.slot),
        because=said(
            "Token {at.position} is in row {at.logical_index}, place {at.offset}; "
            "{at.block_id} times {at.block_size} plus {at.offset}.",
            at=address,
        ),
        wrong=_wrong_slots(address),
        controls={"block_size": block_size, "position": position},
        scene=scene,
        value=value,
    )


def order_of_reading(random: Random) -> Draft:
    _block_size, scene = _draw(random)
    value = scene.values[-1]
    entries = block_table_of(scene.at(value), "A")
    by_number = a, b, c = sorted(entries, key=lambda entry: entry.block_id)
    return Draft(
        kind="order of reading",
        prompt=said(
            "The block table of a request is {table}.\n"
            "Block {a.block_id} holds: {words_of_a}.\n"
            "Block {b.block_id} holds: {words_of_b}.\n"
            "Block {c.block_id} holds: {words_of_c}.\n"
            "In which order does attention see the words?",
            table=_numbers(entries),
            a=a,
            words_of_a=_text([a]),
            b=b,
            words_of_b=_text([b]),
            c=c,
            words_of_c=_text([c]),
        ),
        right=_text(entries),
        because="The table lists the blocks in the order of the text; where they lie does not matter.",
        wrong=(
            Wrong(
                _text(by_number),
                "Block numbers say where a block lies, not what comes first.",
                Misconception.PHYSICAL_ORDER,
            ),
            Wrong(
                "In no fixed order: the result is approximate",
                "The same keys and values are read in the same order as without pages: nothing is approximated.",
                Misconception.APPROXIMATES,
            ),
            Wrong(
                "It cannot: the blocks are not adjacent",
                "The table leads to each block, so they may lie anywhere.",
                Misconception.MUST_BE_ADJACENT,
            ),
        ),
        controls={"value": value},
        scene=scene,
        value=value,
    )


def _draw(random: Random) -> tuple[int, Scene]:
    """One request of three blocks, in places drawn at random, not in rising order, and none at slot 0."""
    block_size = random.randint(2, 4)
    words = passage(2 * block_size + random.randint(1, block_size))
    places = random.sample(range(1, NUM_BLOCKS), 3)
    while places == sorted(places):
        random.shuffle(places)
    return block_size, block_table((Story(words, 0),), block_size, NUM_BLOCKS, places)


def _wrong_slots(address: SlotAddress) -> tuple[Wrong, ...]:
    return (
        Wrong(
            said("slot {position}", position=address.position),
            "That would be right if the blocks lay in order from 0; the table says where they are.",
            Misconception.POSITION_IS_PLACE,
        ),
        Wrong(
            said("slot {slot}", slot=address.block_id * address.block_size + address.position),
            "Inside its block only the remainder of the position counts.",
            Misconception.POSITION_IS_PLACE,
        ),
        Wrong(
            said("slot {slot}", slot=address.block_id + address.offset),
            said("A block number counts blocks; each is {block_size} slots long.", block_size=address.block_size),
            Misconception.BLOCKS_ARE_SLOTS,
        ),
        Wrong(
            said("slot {slot}", slot=address.block_id * address.block_size),
            "This is where the block begins; the token may stand further in.",
            Misconception.BLOCKS_ARE_SLOTS,
        ),
    )


def _numbers(entries: list[TableEntry]) -> str:
    return ", ".join(str(entry.block_id) for entry in entries)


def _text(entries: list[TableEntry]) -> str:
    return " ".join(piece for entry in entries for piece in entry.pieces)


KINDS = (slot_of_a_token, order_of_reading)
