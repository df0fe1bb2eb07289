"""Lesson "Reserved space can go unused": the worked examples' figures, counted from the fold of the arena's trace."""

from __future__ import annotations

import pytest

from course.reserved_space.scene import reservation, reservation_of_length
from course.words import EXAMPLE_REPLY
from engine.baselines.fragmentation import waste


def test_16_reserved_and_7_used_leaves_9_empty_56_percent():
    counted = waste(reservation_of_length(16, 16).at(7))
    assert (counted.num_held, counted.token_states, counted.num_empty) == (16, 7, 9)
    assert round(counted.percent_empty) == 56


def test_32_reserved_for_14_words_wastes_18():
    counted = waste(reservation(32, EXAMPLE_REPLY).at(14))
    assert (counted.num_held, counted.token_states, counted.num_empty) == (32, 14, 18)


def test_a_limit_of_2048_with_a_reply_of_60_leaves_1988_idle():
    counted = waste(reservation_of_length(2048, 60).at(60))
    assert (counted.num_held, counted.num_empty) == (2048, 1988)


def test_every_value_of_the_slider_has_its_frame():
    scene = reservation_of_length(16, 16)
    assert scene.values == tuple(range(17))
    assert [waste(scene.at(value)).token_states for value in scene.values] == list(range(17))
    assert [waste(scene.at(value)).num_empty for value in scene.values] == list(range(16, -1, -1))
    assert {waste(scene.at(value)).num_held for value in scene.values} == {16}


def test_more_words_than_slots_are_refused():
    with pytest.raises(ValueError, match="A reservation of 4 slots holds 1 to 4 words, not 5"):
        reservation_of_length(4, 5)
