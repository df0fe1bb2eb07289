"""Counts of a pool's state: the worked examples' figures, sharing, empty tails, and what is left after the end."""

from __future__ import annotations

from engine.trace import events as ev
from engine.trace.state import CacheState
from engine.trace.usage import block_table_of, usage_of
from views.html_parts import usage_figures


def state_after(*events: ev.Event) -> CacheState:
    state = CacheState()
    for event in events:
        state.apply(event)
    return state


def request(name: str, num_tokens: int) -> ev.RequestAdded:
    return ev.RequestAdded(0, name, tuple(range(num_tokens)), tuple("abcdefghijklmnop"[:num_tokens]), 8)


POOL = ev.PoolCreated(0, 9, 4, 0, (6, 1, 8, 0, 2, 3, 4, 5, 7))
ELEVEN_TOKENS = (
    POOL,
    request("A", 11),
    ev.BlockAllocated(1, 6, "A", 0),
    ev.BlockAllocated(1, 1, "A", 1),
    ev.BlockAllocated(1, 8, "A", 2),
    ev.SlotsWritten(1, "A", 0, (24, 25, 26, 27, 4, 5, 6, 7, 32, 33, 34)),
)


def test_eleven_tokens_on_pages_of_four_take_three_pages_and_leave_one_slot_empty() -> None:
    usage = usage_of(state_after(*ELEVEN_TOKENS))
    assert (usage.num_used_blocks, usage.num_written_slots, usage.num_empty_slots) == (3, 11, 1)
    assert (usage.num_held_slots, usage.num_slots, usage.num_free_blocks) == (12, 36, 6)
    assert (usage.block_fraction, usage.slot_fraction) == (3 / 9, 11 / 36)


def test_the_table_maps_0_to_6_1_to_1_2_to_8_with_slots_and_pieces() -> None:
    rows = block_table_of(state_after(*ELEVEN_TOKENS), "A")
    assert [(r.logical_index, r.block_id, r.first_slot, r.last_slot) for r in rows] == [
        (0, 6, 24, 27), (1, 1, 4, 7), (2, 8, 32, 35),
    ]  # fmt: skip
    assert [(r.first_position, r.num_written, r.num_empty) for r in rows] == [(0, 4, 0), (4, 4, 0), (8, 3, 1)]
    assert ["".join(r.pieces) for r in rows] == ["abcd", "efgh", "ijk"]


def test_a_known_token_without_keys_and_values_counts_as_known_only() -> None:
    usage = usage_of(state_after(*ELEVEN_TOKENS, ev.TokenSampled(1, "A", 11, 5, "l")))
    assert (usage.num_tokens_known, usage.num_tokens_written) == (12, 11)


def test_a_shared_block_counts_once_and_each_further_reference_is_a_copy_avoided() -> None:
    state = state_after(
        *ELEVEN_TOKENS,
        ev.SequenceForked(1, "A", "A#1", "A"),
        ev.BlockShared(1, 6, "A#1", 0, 2, "fork"),
        ev.BlockShared(1, 1, "A#1", 1, 2, "fork"),
        ev.BlockShared(1, 8, "A#1", 2, 2, "fork"),
    )
    usage = usage_of(state)
    assert (usage.num_used_blocks, usage.num_shared_blocks, usage.num_copies_avoided) == (3, 3, 3)
    assert (usage.num_written_slots, usage.num_tokens_written) == (11, 22)
    assert [row.ref_cnt for row in block_table_of(state, "A#1")] == [2, 2, 2]


def test_after_the_end_a_full_block_stays_cached_and_the_others_are_free() -> None:
    state = state_after(
        *ELEVEN_TOKENS,
        ev.BlockStored(1, 6, 77, None, (0, 1, 2, 3), 4, "A", 0),
        ev.BlockFreed(2, 8, "A", 2, 0, False),
        ev.BlockFreed(2, 1, "A", 1, 0, False),
        ev.BlockFreed(2, 6, "A", 0, 0, True),
        ev.SequenceFinished(2, "A", "length"),
    )
    usage = usage_of(state)
    assert (usage.num_used_blocks, usage.num_cached_blocks, usage.num_free_blocks) == (0, 1, 8)
    assert (usage.num_tokens_known, usage.num_held_slots) == (0, 0)
    assert block_table_of(state, "A") == []


def test_the_usage_without_a_pool_is_zero() -> None:
    usage = usage_of(CacheState())
    assert (usage.num_blocks, usage.block_fraction, usage.slot_fraction) == (0, 0.0, 0.0)


def test_the_figure_of_sharing_is_labelled_as_a_current_count() -> None:
    """It goes down when one of those who share ends. "Copies avoided" read as a sum of all there ever were."""
    cell = '<dt>Blocks saved by sharing</dt><dd data-figure="copies_avoided">0</dd>'
    assert cell in usage_figures(0, usage_of(CacheState()))
