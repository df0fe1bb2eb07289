"""Lesson "Memory across a batch": 100, 64, 53, 36 %, and blocks counted apart from slots."""

from __future__ import annotations

import pytest

from course.batch.scene import LENGTHS, batch, blocks_side_by_side
from engine.baselines.fragmentation import percent_fewer_held, waste
from engine.trace.usage import usage_of


def test_five_requests_100_reserved_64_paged_53_stored_36_percent_fewer():
    both = batch()
    contiguous, paged = both.contiguous.at(5), both.paged.at(5)
    assert waste(contiguous).num_held == 100
    assert waste(paged).num_held == usage_of(paged).num_held_slots == 64
    assert waste(contiguous).token_states == waste(paged).token_states == usage_of(paged).num_tokens_written == 53
    assert percent_fewer_held(paged, contiguous) == 36.0


def test_every_number_of_requests_has_its_frame_in_both_layouts():
    both = batch()
    for number in range(len(LENGTHS) + 1):
        contiguous, paged = both.contiguous.at(number), both.paged.at(number)
        assert waste(contiguous).num_held == 20 * number
        assert waste(contiguous).token_states == waste(paged).token_states == sum(LENGTHS[:number])
        assert len(contiguous.regions) == number
        tables = [len(s.block_table) for s in paged.sequences.values()]
        assert tables == [-(-length // 4) for length in LENGTHS[:number]]
        assert [s.pieces for s in paged.sequences.values()] == [s.pieces for s in contiguous.sequences.values()]


@pytest.mark.parametrize("block_size", [1, 3, 5, 16, 64])
@pytest.mark.parametrize("num_reserved", [18, 20, 64])
def test_controls_of_the_batch_scene(block_size, num_reserved):
    both = batch(num_reserved=num_reserved, block_size=block_size)
    paged = waste(both.paged.at(len(LENGTHS)))
    assert paged.num_held == sum(-(-length // block_size) * block_size for length in LENGTHS)
    assert waste(both.contiguous.at(len(LENGTHS))).num_held == num_reserved * len(LENGTHS)


def test_blocks_larger_than_the_reservations_hold_more():
    both = batch((5, 5), num_reserved=5, block_size=16)
    assert percent_fewer_held(both.paged.at(2), both.contiguous.at(2)) == -220.0


def test_a_gauge_of_blocks_is_not_a_gauge_of_slots():
    usage = usage_of(blocks_side_by_side((17, 18), block_size=16, num_blocks=6).at(2))
    assert round(100 * usage.block_fraction, 1) == 66.7
    assert round(100 * usage.slot_fraction, 1) == 36.5


def test_a_pool_can_be_full_of_blocks_and_nearly_empty_of_tokens():
    usage = usage_of(blocks_side_by_side((17, 17), block_size=16, num_blocks=4).at(2))
    assert usage.block_fraction == 1.0
    assert usage.num_empty_slots == 30


def test_a_pool_that_is_too_small_is_refused_with_a_reason():
    with pytest.raises(ValueError, match="R2 does not fit: it needs 2 blocks, 1 free"):
        blocks_side_by_side((17, 17), block_size=16, num_blocks=3)
