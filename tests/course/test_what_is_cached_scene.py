"""Lesson "What is cached": one token's keys and values more each step, one token always still to be written."""

from __future__ import annotations

import pytest

from course.what_is_cached.scene import what_is_cached
from course.words import passage
from engine.trace.usage import usage_of


def test_prefill_writes_the_prompt_and_decode_one_token_a_step():
    scene = what_is_cached(passage(5), passage(7))
    assert scene.values == (0, 5, 6, 7, 8, 9, 10, 11, 12)
    assert [usage_of(scene.at(value)).num_written_slots for value in scene.values] == list(scene.values)
    assert [usage_of(scene.at(value)).num_tokens_known for value in scene.values] == [5, *range(6, 14)]


def test_all_of_it_lies_in_one_row():
    frame = what_is_cached(passage(5), passage(7)).at(12)
    assert frame.num_blocks == 1
    assert [slot.piece for slot in frame.blocks[0].slots if slot] == [*passage(5), *passage(7)]


def test_a_request_without_a_prompt_is_refused():
    with pytest.raises(ValueError, match="takes 1 to 256 words; these are 0"):
        what_is_cached((), ())
