"""Questions of "Keep pages in order"."""

from __future__ import annotations

from random import Random

from course.block_table.scene import Story, block_table
from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.scene import Scene
from course.words import passage
from engine.i18n import _
from engine.trace.usage import SlotAddress, TableEntry, address_of, block_table_of

NUM_BLOCKS = 9


def slot_of_a_token(random: Random) -> Draft:
    """The slot in which one token lies."""
    block_size, scene = _draw(random)
    value = scene.values[-1]
    position = random.randint(block_size, value - 1)
    frame = scene.at(value)
    address = address_of(frame, "A", position)
    return Draft(
        prompt=_(
            "Blocks have {block_size} slots.\n"
            "The block table of a request is {table}.\n"
            "In which slot of memory are the keys and values of token {position}? (Count from 0.)"
        ).format(block_size=block_size, table=_numbers(block_table_of(frame, "A")), position=position),
        right=_("slot {slot}").format(slot=address.slot),
        because=_(
            "Token {at.position} is in row {at.logical_index} at offset {at.offset}: {at.block_id} × "
            "{at.block_size} + {at.offset}."
        ).format(at=address),
        wrong=_wrong_slots(address),
        controls={"block_size": block_size, "position": position},
        scene=scene,
        value=value,
    )


def order_of_reading(random: Random) -> Draft:
    """In which order attention reads the physical blocks."""
    _block_size, scene = _draw(random)
    value = scene.values[-1]
    entries = block_table_of(scene.at(value), "A")
    by_number = a, b, c = sorted(entries, key=lambda entry: entry.block_id)
    return Draft(
        prompt=_(
            "The block table of a request is {table}.\n"
            "Block {a.block_id} holds: {words_of_a}.\n"
            "Block {b.block_id} holds: {words_of_b}.\n"
            "Block {c.block_id} holds: {words_of_c}.\n"
            "In which order does attention read the words?"
        ).format(
            table=_numbers(entries), a=a, words_of_a=_text([a]), b=b, words_of_b=_text([b]), c=c, words_of_c=_text([c])
        ),
        right=_text(entries),
        because=_(
            "The block table lists the blocks in the order of the text; where they are in memory does not matter."
        ),
        wrong=(
            Wrong(
                _text(by_number),
                _("A block number is a place in memory, not a position in the text."),
                Misconception.PHYSICAL_ORDER,
            ),
            Wrong(
                _("In no fixed order: the result is approximate"),
                _("The same keys and values are read in the same order as without paging: nothing is approximated."),
                Misconception.APPROXIMATES,
            ),
            Wrong(
                _("It cannot: the blocks are not adjacent"),
                _("The block table points to each block, so they can be anywhere in memory."),
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
            _("slot {position}").format(position=address.position),
            _("That would be right if the blocks were stored in order from 0; the table says where they are."),
            Misconception.POSITION_IS_PLACE,
        ),
        Wrong(
            _("slot {slot}").format(slot=address.block_id * address.block_size + address.position),
            _("Inside the block, only the remainder of the position counts."),
            Misconception.POSITION_IS_PLACE,
        ),
        Wrong(
            _("slot {slot}").format(slot=address.block_id + address.offset),
            _("A block number counts blocks, and each block has {block_size} slots.").format(
                block_size=address.block_size
            ),
            Misconception.BLOCKS_ARE_SLOTS,
        ),
        Wrong(
            _("slot {slot}").format(slot=address.block_id * address.block_size),
            _("This is the first slot of the block; the offset is missing."),
            Misconception.BLOCKS_ARE_SLOTS,
        ),
    )


def _numbers(entries: list[TableEntry]) -> str:
    return ", ".join(str(entry.block_id) for entry in entries)


def _text(entries: list[TableEntry]) -> str:
    return " ".join(piece for entry in entries for piece in entry.pieces)


KINDS = (slot_of_a_token, order_of_reading)
