"""Lesson "Waste between reservations": gaps of 8, 6 and 10 refuse 20, pages do not; actions as text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.waste_between.actions import Add, Finish, format_actions, next_name, parse_actions
from course.waste_between.scene import GAPS, fragmentation
from engine.baselines.fragmentation import free_extents, longest_free_extent, waste
from engine.trace.events import RequestRefused
from engine.trace.usage import block_table_of, usage_of


def refusals(scene):
    return [event.reason for event in scene.trace if isinstance(event, RequestRefused)]


@pytest.mark.parametrize("allocator", ["first_fit", "best_fit"])
def test_gaps_of_8_6_and_10_refuse_a_request_of_20(allocator):
    scene = fragmentation(allocator=allocator).contiguous
    frame = scene.at(len(GAPS))
    assert [run.num_slots for run in free_extents(frame)] == [8, 6, 10]
    assert waste(frame).free == 24
    assert longest_free_extent(frame) == 10
    assert refusals(scene) == ["24 slots free, longest gap 10, need 20"]


def test_the_same_arrivals_fit_on_pages():
    scene = fragmentation().paged
    assert refusals(scene) == []
    before, after = scene.at(len(GAPS) - 1), scene.at(len(GAPS))
    assert waste(before).free == 24
    table = after.sequences["F"].block_table
    assert len(table) == 10
    assert any(later != earlier + 1 for earlier, later in pairwise(table)), "not neighbours"
    assert waste(after).token_states == 4 + 4 + 20
    assert usage_of(after).num_empty_slots == 0


def test_buddy_rounds_up_and_is_full_sooner():
    scene = fragmentation(allocator="buddy").contiguous
    assert refusals(scene) == ["8 slots free, longest gap 8, need 16", "24 slots free, longest gap 16, need 32"]
    filled = scene.at(4)
    assert {r.request_id: (r.num_needed, r.num_slots) for r in filled.regions.values()} == {
        "A": (8, 8),
        "B": (4, 4),
        "C": (6, 8),
        "D": (4, 4),
    }
    assert waste(filled).external_fragmentation == 2


def test_first_fit_and_best_fit_choose_different_gaps():
    actions = parse_actions("A8 B4 C6 D14 -A -C E5")
    first = fragmentation(actions, "first_fit").contiguous.at(7)
    best = fragmentation(actions, "best_fit").contiguous.at(7)
    assert first.regions["E"].start == 0
    assert best.regions["E"].start == 12
    assert longest_free_extent(first) == 6
    assert longest_free_extent(best) == 8


def test_the_tail_of_a_page_can_cost_an_admission_too():
    both = fragmentation(parse_actions("A9 B7"), num_slots=16, block_size=4)
    assert refusals(both.contiguous) == []
    assert refusals(both.paged) == ["it needs 2 blocks, 1 free"]


def test_finishing_a_request_that_holds_nothing_keeps_the_frame():
    both = fragmentation(parse_actions("A30 B9 -B -Z -A"))
    for scene in (both.contiguous, both.paged):
        assert scene.frame_of == {0: 0, 1: 1, 2: 2, 3: 2, 4: 2, 5: 3}
        assert waste(scene.at(5)).free == 32


@given(
    actions=st.lists(
        st.one_of(
            st.builds(Add, st.sampled_from("ABCDEFGH"), st.integers(1, 20)),
            st.builds(Finish, st.sampled_from("ABCDEFGH")),
        ),
        max_size=20,
        unique_by=lambda a: (type(a), a.request_id),
    ),
    allocator=st.sampled_from(["first_fit", "best_fit", "buddy"]),
    block_size=st.integers(1, 6),
)
@settings(max_examples=40, deadline=None)
def test_any_actions_keep_the_invariants(actions, allocator, block_size):
    """Both scenes check their own invariants after every action; here: text round trip and equal contents."""
    assert parse_actions(format_actions(actions)) == tuple(actions)
    both = fragmentation(actions, allocator, block_size=block_size)
    assert both.contiguous.values == both.paged.values == tuple(range(len(actions) + 1))
    contiguous, paged = both.contiguous.at(len(actions)), both.paged.at(len(actions))
    assert waste(contiguous).num_slots == 32
    assert waste(paged).num_slots == 32 // block_size * block_size
    assert waste(contiguous).num_empty == 0, "each reservation is exact"
    tables = [block_table_of(paged, seq_id) for seq_id in paged.sequences]
    assert all(entry.num_empty == 0 for table in tables for entry in table[:-1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A0", "length from 1 to 256"),
        ("A257", "length from 1 to 256"),
        ("A8 8A", "this one is '8A'"),
        ("a8", "this one is 'a8'"),
        ("-A1", "this one is '-A1'"),
        ("A٣", "this one is"),
        ("A8 -A A4", "Request A comes twice"),
        ("A1 " * 65, "At most 64 actions"),
    ],
)
def test_invalid_actions_are_refused_with_a_reason(text, message):
    with pytest.raises(ValueError, match=message):
        parse_actions(text)


def test_the_next_request_name_is_unused():
    assert next_name(()) == "A"
    assert next_name(GAPS) == "G"
    assert next_name([Add(chr(ord("A") + i), 1) for i in range(26)]) == "AA"


@pytest.mark.parametrize("block_size", [0, 33])
def test_blocks_that_are_no_part_of_the_memory_are_refused(block_size):
    with pytest.raises(ValueError, match="A block has 1 to 32 slots here"):
        fragmentation(block_size=block_size)
