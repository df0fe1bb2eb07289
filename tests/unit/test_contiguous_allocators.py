"""First fit, best fit and buddy, alone: exact choices, exact splits and merges, and properties under random use."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.buddy import BuddyAllocator, buddy_blocks, power_of_two_at_least
from engine.contiguous import ALLOCATORS
from engine.fit import BestFit, FirstFit
from engine.runs import Run, gaps_between

use = st.lists(st.tuples(st.booleans(), st.integers(1, 20)), max_size=40)
"""Random use: (reserve that many | free the n-th held run)."""


def play(allocator, actions):
    """Apply the actions; yield the held runs after each."""
    held: list[Run] = []
    for is_reserve, number in actions:
        if is_reserve:
            run = allocator.reserve(number)
            held += [run] if run else []
        elif held:
            allocator.free(held.pop(number % len(held)))
        yield held


def with_gaps(allocator, *lengths):
    """Free runs of the given lengths in this order, held runs of 1 slot between them."""
    runs = []
    for length in lengths:
        runs.append(allocator.reserve(length))
        allocator.reserve(1)
    for run in runs:
        allocator.free(run)
    return allocator


# ---- exact choices ----


def test_first_fit_takes_the_lowest_run_that_is_long_enough():
    allocator = with_gaps(FirstFit(27), 8, 6, 10)
    assert allocator.free_runs() == [Run(0, 8), Run(9, 6), Run(16, 10)]
    assert allocator.reserve(5) == Run(0, 5)
    assert allocator.reserve(9) == Run(16, 9)
    assert allocator.free_runs() == [Run(5, 3), Run(9, 6), Run(25, 1)]


def test_best_fit_takes_the_shortest_run_that_is_long_enough():
    allocator = with_gaps(BestFit(27), 8, 6, 10)
    assert allocator.reserve(5) == Run(9, 5)
    assert allocator.reserve(8) == Run(0, 8)
    assert allocator.free_runs() == [Run(14, 1), Run(16, 10)]


def test_best_fit_takes_the_lowest_of_equal_runs():
    assert with_gaps(BestFit(14), 6, 6).reserve(6) == Run(0, 6)


def test_a_freed_run_joins_both_neighbours():
    allocator = FirstFit(12)
    a, b, c = allocator.reserve(4), allocator.reserve(4), allocator.reserve(4)
    allocator.free(a)
    allocator.free(c)
    assert allocator.free_runs() == [Run(0, 4), Run(8, 4)]
    allocator.free(b)
    assert allocator.free_runs() == [Run(0, 12)]


def test_buddy_splits_down_to_the_need():
    allocator = BuddyAllocator(16)
    assert allocator.reserve(3) == Run(0, 4)
    assert allocator.free_runs() == [Run(4, 4), Run(8, 8)]
    assert allocator.reserve(2) == Run(4, 2)
    assert allocator.free_runs() == [Run(6, 2), Run(8, 8)]


def test_buddy_takes_the_shortest_block_that_holds_the_need():
    allocator = BuddyAllocator(16)
    first, second, _ = allocator.reserve(4), allocator.reserve(4), allocator.reserve(2)
    allocator.free(first)
    assert allocator.free_runs() == [Run(0, 4), Run(10, 2), Run(12, 4)]
    assert allocator.reserve(2) == Run(10, 2)
    assert allocator.reserve(3) == Run(0, 4)
    assert second == Run(4, 4)


def test_buddy_merges_only_with_the_buddy_itself():
    allocator = BuddyAllocator(16)
    a, b, c, d = (allocator.reserve(4) for _ in range(4))
    allocator.free(b)
    allocator.free(c)
    assert allocator.free_runs() == [Run(4, 4), Run(8, 4)], "neighbours, but of different parents"
    assert allocator.reserve(8) is None
    allocator.free(a)
    assert allocator.free_runs() == [Run(0, 8), Run(8, 4)]
    allocator.free(d)
    assert allocator.free_runs() == [Run(0, 16)]


def test_buddy_memory_that_is_no_power_of_two_is_a_row_of_blocks():
    assert list(buddy_blocks(Run(0, 40))) == [Run(0, 32), Run(32, 8)]
    assert list(buddy_blocks(Run(6, 10))) == [Run(6, 2), Run(8, 8)]
    allocator = BuddyAllocator(40)
    assert allocator.reserve(5) == Run(32, 8)
    assert allocator.reserve(17) == Run(0, 32)
    assert allocator.reserve(1) is None


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 1), (2, 2), (3, 4), (25, 32), (32, 32), (33, 64)])
def test_power_of_two_at_least(count, expected):
    assert power_of_two_at_least(count) == expected


@pytest.mark.parametrize("kind", ALLOCATORS)
def test_a_run_is_given_back_once(kind):
    allocator = ALLOCATORS[kind](16)
    run = allocator.reserve(4)
    assert run is not None
    allocator.free(run)
    with pytest.raises(ValueError, match=r"^Slots 0 to 3 are not a reserved run\.$"):
        allocator.free(run)
    with pytest.raises(ValueError, match=r"^Slots 14 to 17 are not a reserved run\.$"):
        allocator.free(Run(14, 4))
    assert allocator.free_runs() == [Run(0, 16)]


# ---- properties ----


@pytest.mark.parametrize("kind", ALLOCATORS)
@given(num_slots=st.integers(1, 70), actions=use)
def test_held_and_free_runs_always_cover_memory_once(kind, num_slots, actions):
    allocator = ALLOCATORS[kind](num_slots)
    for held in play(allocator, actions):
        runs = sorted(held + allocator.free_runs())
        assert runs[0].start == 0
        assert all(left.end == right.start for left, right in pairwise(runs))
        assert runs[-1].end == num_slots


@pytest.mark.parametrize("kind", ["first_fit", "best_fit"])
@given(num_slots=st.integers(1, 70), actions=use)
def test_free_runs_of_the_fits_never_touch(kind, num_slots, actions):
    allocator = ALLOCATORS[kind](num_slots)
    for held in play(allocator, actions):
        assert allocator.free_runs() == gaps_between(held, num_slots)


@given(num_slots=st.integers(1, 70), actions=use)
def test_free_blocks_of_buddy_are_the_fully_merged_ones(num_slots, actions):
    allocator = BuddyAllocator(num_slots)
    for held in play(allocator, actions):
        assert all(run.num_slots & (run.num_slots - 1) == 0 and run.start % run.num_slots == 0 for run in held)
        merged = [block for gap in gaps_between(held, num_slots) for block in buddy_blocks(gap)]
        assert allocator.free_runs() == merged


@pytest.mark.parametrize("kind", ALLOCATORS)
@given(num_slots=st.integers(1, 70), actions=use)
def test_memory_is_whole_again_when_everything_is_freed(kind, num_slots, actions):
    allocator = ALLOCATORS[kind](num_slots)
    whole = allocator.free_runs()
    held = [list(h) for h in play(allocator, actions)]
    for run in held[-1] if held else []:
        allocator.free(run)
    assert allocator.free_runs() == whole
    if kind != "buddy":
        assert whole == [Run(0, num_slots)]


@given(num_slots=st.integers(1, 70), actions=use, need=st.integers(1, 20))
def test_fits_choose_what_they_say(num_slots, actions, need):
    for allocator, rank in ((FirstFit(num_slots), lambda r: r.start), (BestFit(num_slots), lambda r: r[::-1])):
        list(play(allocator, actions))
        fitting = [run for run in allocator.free_runs() if run.num_slots >= need]
        chosen = allocator.reserve(need)
        assert (chosen.start if chosen else None) == (min(fitting, key=rank).start if fitting else None)


@given(num_slots=st.integers(1, 70), actions=use, need=st.integers(1, 40))
def test_an_allocator_says_no_exactly_when_no_free_run_holds_the_need(num_slots, actions, need):
    for kind in ALLOCATORS.values():
        allocator = kind(num_slots)
        list(play(allocator, actions))
        size = allocator.size_for(need)
        fits = any(run.num_slots >= size for run in allocator.free_runs())
        run = allocator.reserve(need)
        assert (run is not None) == fits
        assert run is None or run.num_slots == size >= need
