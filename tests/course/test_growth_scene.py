"""Lesson "Add pages as the request grows": worked examples from the real engine's trace, and both cursors."""

from __future__ import annotations

import pytest

from course.growth.scene import growth
from course.words import EXAMPLE_REPLY, passage
from engine.baselines.fragmentation import waste
from engine.trace.events import BlockAllocated
from engine.trace.usage import block_table_of, usage_of


def test_11_tokens_on_pages_of_4_take_3_pages_and_leave_1_slot_empty():
    scene = growth(passage(16), 4)
    usage = usage_of(scene.at(11))
    assert (usage.num_tokens_written, usage.num_used_blocks, usage.num_empty_slots) == (11, 3, 1)


def test_the_worked_examples_reply_in_blocks_of_5():
    scene = growth(EXAMPLE_REPLY, 5)
    frame = scene.at(14)
    assert [" ".join(entry.pieces) for entry in block_table_of(frame, "A")] == [
        "Rain started just as the",
        "match reached its final over",
        "and everyone ran inside",
    ]
    counted = waste(frame)
    assert (counted.num_held, counted.token_states, counted.num_empty) == (15, 14, 1)


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 5, 16])
def test_only_the_last_block_has_empty_slots_and_a_block_comes_when_it_is_needed(block_size):
    scene = growth(passage(16), block_size)
    assert scene.values == tuple(range(17))
    for value in scene.values:
        frame = scene.at(value)
        entries = block_table_of(frame, "A")
        assert [entry.num_empty for entry in entries[:-1]] == [0] * max(len(entries) - 1, 0)
        assert len(entries) == -(-value // block_size)
        assert all(entry.num_written for entry in entries)
        assert usage_of(frame).num_empty_slots < block_size
    steps = [event.step for event in scene.trace if isinstance(event, BlockAllocated)]
    assert steps == list(range(1, 17, block_size)), "one block at a time, in the step that writes its first slot"


def test_the_two_cursors_are_one_token_apart_while_it_runs():
    scene = growth(passage(9), 4, num_prompt_words=3)
    assert scene.values == (0, 3, 4, 5, 6, 7, 8, 9)
    for value in scene.values[1:]:
        sequence = scene.at(value).sequences["A"]
        assert (sequence.num_computed_tokens, sequence.num_tokens) == (value, value + 1)
    assert scene.at(0).sequences["A"].num_tokens == 3, "the prompt is known before anything is written"
    assert scene.at(9).requests["A"].status == "running"


def test_blocks_are_handed_out_in_the_order_asked_for():
    assert growth(passage(7), 3, free_order=(2, 0, 1)).at(7).sequences["A"].block_table == [2, 0, 1]


def test_no_word_is_refused():
    with pytest.raises(ValueError, match="takes 1 to 256 words; these are 0"):
        growth([], 4)
