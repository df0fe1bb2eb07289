"""First fit, best fit and buddy, alone: exact choices, exact splits and merges, and properties under random use."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.baselines.buddy import BuddyAllocator, buddy_blocks, power_of_two_at_least
from engine.baselines.contiguous import ALLOCATORS
from engine.baselines.extent import Extent, gaps_between
from engine.baselines.free_list import BestFit, FirstFit

use = st.lists(st.tuples(st.booleans(), st.integers(1, 20)), max_size=40)
"""Random use: (reserve that many | free the n-th held run)."""


def play(allocator, actions):
    """Apply the actions; yield the held runs after each."""
    held: list[Extent] = []
    for is_reserve, number in actions:
        if is_reserve:
            extent = allocator.reserve(number)
            held += [extent] if extent else []
        elif held:
            allocator.free(held.pop(number % len(held)))
        yield held


def with_gaps(allocator, *lengths):
    """Free runs of the given lengths in this order, held runs of 1 slot between them."""
    extents = []
    for length in lengths:
        extents.append(allocator.reserve(length))
        allocator.reserve(1)
    for extent in extents:
        allocator.free(extent)
    return allocator


# ---- exact choices ----


def test_first_fit_takes_the_lowest_extent_that_is_long_enough():
    allocator = with_gaps(FirstFit(27), 8, 6, 10)
    assert allocator.free_extents() == [Extent(0, 8), Extent(9, 6), Extent(16, 10)]
    assert allocator.reserve(5) == Extent(0, 5)
    assert allocator.reserve(9) == Extent(16, 9)
    assert allocator.free_extents() == [Extent(5, 3), Extent(9, 6), Extent(25, 1)]


def test_best_fit_takes_the_shortest_extent_that_is_long_enough():
    allocator = with_gaps(BestFit(27), 8, 6, 10)
    assert allocator.reserve(5) == Extent(9, 5)
    assert allocator.reserve(8) == Extent(0, 8)
    assert allocator.free_extents() == [Extent(14, 1), Extent(16, 10)]


def test_best_fit_takes_the_lowest_of_equal_extents():
    assert with_gaps(BestFit(14), 6, 6).reserve(6) == Extent(0, 6)


def test_a_freed_extent_is_merged_with_both_adjacent_ones():
    allocator = FirstFit(12)
    a, b, c = allocator.reserve(4), allocator.reserve(4), allocator.reserve(4)
    allocator.free(a)  # type: ignore[arg-type]
    allocator.free(c)  # type: ignore[arg-type]
    assert allocator.free_extents() == [Extent(0, 4), Extent(8, 4)]
    allocator.free(b)  # type: ignore[arg-type]
    assert allocator.free_extents() == [Extent(0, 12)]


def test_buddy_splits_down_to_the_need():
    allocator = BuddyAllocator(16)
    assert allocator.reserve(3) == Extent(0, 4)
    assert allocator.free_extents() == [Extent(4, 4), Extent(8, 8)]
    assert allocator.reserve(2) == Extent(4, 2)
    assert allocator.free_extents() == [Extent(6, 2), Extent(8, 8)]


def test_buddy_takes_the_shortest_block_that_holds_the_need():
    allocator = BuddyAllocator(16)
    first, second, _ = allocator.reserve(4), allocator.reserve(4), allocator.reserve(2)
    allocator.free(first)  # type: ignore[arg-type]
    assert allocator.free_extents() == [Extent(0, 4), Extent(10, 2), Extent(12, 4)]
    assert allocator.reserve(2) == Extent(10, 2)
    assert allocator.reserve(3) == Extent(0, 4)
    assert second == Extent(4, 4)


def test_buddy_merges_only_with_the_buddy_itself():
    allocator = BuddyAllocator(16)
    a, b, c, d = (allocator.reserve(4) for _ in range(4))
    allocator.free(b)  # type: ignore[arg-type]
    allocator.free(c)  # type: ignore[arg-type]
    assert allocator.free_extents() == [Extent(4, 4), Extent(8, 4)], "neighbours, but of different parents"
    assert allocator.reserve(8) is None
    allocator.free(a)  # type: ignore[arg-type]
    assert allocator.free_extents() == [Extent(0, 8), Extent(8, 4)]
    allocator.free(d)  # type: ignore[arg-type]
    assert allocator.free_extents() == [Extent(0, 16)]


def test_buddy_memory_that_is_no_power_of_two_is_several_blocks():
    assert list(buddy_blocks(Extent(0, 40))) == [Extent(0, 32), Extent(32, 8)]
    assert list(buddy_blocks(Extent(6, 10))) == [Extent(6, 2), Extent(8, 8)]
    allocator = BuddyAllocator(40)
    assert allocator.reserve(5) == Extent(32, 8)
    assert allocator.reserve(17) == Extent(0, 32)
    assert allocator.reserve(1) is None


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 1), (2, 2), (3, 4), (25, 32), (32, 32), (33, 64)])
def test_power_of_two_at_least(count, expected):
    assert power_of_two_at_least(count) == expected


@pytest.mark.parametrize("kind", ALLOCATORS)
def test_an_extent_is_freed_once(kind):
    allocator = ALLOCATORS[kind](16)
    extent = allocator.reserve(4)
    assert extent is not None
    allocator.free(extent)
    with pytest.raises(ValueError, match=r"^Slots 0 to 3 are not a reserved region\.$"):
        allocator.free(extent)
    with pytest.raises(ValueError, match=r"^Slots 14 to 17 are not a reserved region\.$"):
        allocator.free(Extent(14, 4))
    assert allocator.free_extents() == [Extent(0, 16)]


# ---- properties ----


@pytest.mark.parametrize("kind", ALLOCATORS)
@given(num_slots=st.integers(1, 70), actions=use)
def test_allocated_and_free_extents_always_cover_memory_once(kind, num_slots, actions):
    allocator = ALLOCATORS[kind](num_slots)
    for held in play(allocator, actions):
        extents = sorted(held + allocator.free_extents())
        assert extents[0].start == 0
        assert all(left.end == right.start for left, right in pairwise(extents))
        assert extents[-1].end == num_slots


@pytest.mark.parametrize("kind", ["first_fit", "best_fit"])
@given(num_slots=st.integers(1, 70), actions=use)
def test_free_extents_of_the_free_list_are_never_adjacent(kind, num_slots, actions):
    allocator = ALLOCATORS[kind](num_slots)
    for held in play(allocator, actions):
        assert allocator.free_extents() == gaps_between(held, num_slots)


@given(num_slots=st.integers(1, 70), actions=use)
def test_free_blocks_of_buddy_are_the_fully_merged_ones(num_slots, actions):
    allocator = BuddyAllocator(num_slots)
    for held in play(allocator, actions):
        assert all(e.num_slots & (e.num_slots - 1) == 0 and e.start % e.num_slots == 0 for e in held)
        merged = [block for gap in gaps_between(held, num_slots) for block in buddy_blocks(gap)]
        assert allocator.free_extents() == merged


@pytest.mark.parametrize("kind", ALLOCATORS)
@given(num_slots=st.integers(1, 70), actions=use)
def test_memory_is_one_free_extent_when_everything_is_freed(kind, num_slots, actions):
    allocator = ALLOCATORS[kind](num_slots)
    whole = allocator.free_extents()
    held = [list(h) for h in play(allocator, actions)]
    for extent in held[-1] if held else []:
        allocator.free(extent)
    assert allocator.free_extents() == whole
    if kind != "buddy":
        assert whole == [Extent(0, num_slots)]


@given(num_slots=st.integers(1, 70), actions=use, need=st.integers(1, 20))
def test_first_fit_and_best_fit_choose_by_their_rule(num_slots, actions, need):
    for allocator, rank in ((FirstFit(num_slots), lambda r: r.start), (BestFit(num_slots), lambda r: r[::-1])):
        list(play(allocator, actions))
        fitting = [extent for extent in allocator.free_extents() if extent.num_slots >= need]
        chosen = allocator.reserve(need)
        assert (chosen.start if chosen else None) == (min(fitting, key=rank).start if fitting else None)


@given(num_slots=st.integers(1, 70), actions=use, need=st.integers(1, 40))
def test_an_allocator_refuses_exactly_when_no_free_extent_is_long_enough(num_slots, actions, need):
    for kind in ALLOCATORS.values():
        allocator = kind(num_slots)
        list(play(allocator, actions))
        size = allocator.size_for(need)
        fits = any(extent.num_slots >= size for extent in allocator.free_extents())
        extent = allocator.reserve(need)
        assert (extent is not None) == fits
        assert extent is None or extent.num_slots == size >= need
