"""Lesson "Keep pages in order": the table 0 -> 6, 1 -> 1, 2 -> 8, slot arithmetic, and order under shuffling."""

from __future__ import annotations

import pytest

from course.block_table.scene import Story, block_table, shuffled_places
from course.words import FOX, words_of
from engine.trace.events import SlotsWritten
from engine.trace.usage import address_of, block_table_of, usage_of

LAST = len(FOX)


def test_the_worked_examples_table_over_9_blocks():
    frame = block_table().at(LAST)
    assert frame.num_blocks == 9
    rows = {entry.logical_index: entry.block_id for entry in block_table_of(frame, "A")}
    assert rows == {0: 6, 1: 1, 2: 8}


def test_only_the_last_block_of_a_request_has_empty_slots():
    frame = block_table().at(LAST)
    assert [" ".join(e.pieces) for e in block_table_of(frame, "A")] == ["The red fox", "crossed the quiet", "field"]
    assert [e.num_empty for e in block_table_of(frame, "A")] == [0, 0, 2]
    assert [e.num_empty for e in block_table_of(frame, "B")] == [0, 1]
    assert [e.num_empty for e in block_table_of(frame, "C")] == [0, 2]
    assert list(frame.free_block_queue) == [2, 4]


def test_slot_arithmetic_agrees_with_where_the_engine_wrote():
    scene = block_table()
    frame = scene.at(LAST)
    written = {
        (event.seq_id, event.start + i): slot
        for event in scene.trace
        if isinstance(event, SlotsWritten)
        for i, slot in enumerate(event.slots)
    }
    assert len(written) == 7 + 5 + 4
    for (seq_id, position), slot in written.items():
        address = address_of(frame, seq_id, position)
        assert address.slot == slot == address.block_id * 3 + address.offset
        assert (address.logical_index, address.offset) == (position // 3, position % 3)
        content = frame.blocks[address.block_id].slots[address.offset]
        assert (content.seq_id, content.position, content.piece) == (seq_id, position, address.piece)


def test_token_5_of_the_worked_examples_request():
    address = address_of(block_table().at(LAST), "A", 5)
    assert (address.logical_index, address.block_id, address.offset, address.slot) == (1, 1, 2, 5)
    assert address.piece == "quiet"


def test_a_token_without_keys_and_values_has_no_address():
    frame = block_table().at(LAST)
    assert frame.sequences["A"].num_tokens == 8
    for position in (7, -1, 100):
        with pytest.raises(IndexError, match=f"A has no keys and values of token {position} in the pool"):
            address_of(frame, "A", position)


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_blocks_keep_the_order_of_the_words(seed):
    scene = block_table(shuffle_seed=seed)
    before, after = scene.at(LAST), scene.at(LAST + 1)
    places = shuffled_places(9, seed)
    for seq_id in "ABC":
        old, new = block_table_of(before, seq_id), block_table_of(after, seq_id)
        assert [e.block_id for e in new] == [places[e.block_id] for e in old]
        assert [e.pieces for e in new] == [e.pieces for e in old]
    assert [address_of(after, "A", i).piece for i in range(LAST)] == list(FOX)
    assert usage_of(after) == usage_of(before)
    assert places != tuple(range(9))


def test_readers_words_in_other_blocks():
    stories = (Story(words_of("one two three four"), 0), Story(words_of("five six"), 2))
    frame = block_table(stories, block_size=2, num_blocks=5, free_order=(4, 1, 0)).at(4)
    assert frame.sequences["A"].block_table == [4, 1]
    assert frame.sequences["B"].block_table == [0]


@pytest.mark.parametrize(
    ("stories", "num_blocks", "message"),
    [
        ((Story(FOX, 1),), 9, "in order of arrival"),
        ((Story(FOX, 0), Story(("short",), 0)), 9, "a word for every step"),
        ((Story(FOX, 0), Story(FOX, 0)), 5, "need 6 blocks of 3; the pool has 5"),
    ],
)
def test_invalid_scenes_are_refused(stories, num_blocks, message):
    with pytest.raises(ValueError, match=message):
        block_table(stories, 3, num_blocks, ())
