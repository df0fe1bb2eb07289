"""The fold: what each event means for the picture, and what is refused because it contradicts what came before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kv_cache.block_pool import BlockPool
from engine.trace import events as ev
from engine.trace.state import MAX_SLOTS, CacheState, ReplayError, SlotContent
from engine.trace.trace import Trace
from tests.helpers.traces import paged_trace, plain_fold

POOL = ev.PoolCreated(0, 4, 2, 2, (2, 0, 1, 3))
ADDED = ev.RequestAdded(0, "A", (10, 11, 12), ("a", "b", "c"), 5)
TABLE = [ev.BlockAllocated(1, 2, "A", 0), ev.BlockAllocated(1, 0, "A", 1)]
WRITTEN = ev.SlotsWritten(1, "A", 0, (4, 5, 0))
ARENA = ev.ArenaCreated(0, 8, "first_fit", "Oracle")
REGION = ev.RegionReserved(1, "A", 2, 4, 3)
ONE_EACH = "a region belongs to one request, and a request has one region"
NOT_THAT_ONE = "the region given back is not the one that was reserved"


def fold(*events) -> CacheState:
    return plain_fold(list(events))


# ---- pages ----


def test_a_new_pool_is_free_in_the_order_given():
    state = fold(POOL)
    assert list(state.free_block_queue) == [2, 0, 1, 3]
    assert {block.status for block in state.blocks} == {"free"}
    assert (state.num_blocks, state.block_size, len(state.cpu_blocks)) == (4, 2, 2)


def test_tokens_are_in_the_slots_they_were_written_to():
    state = fold(POOL, ADDED, *TABLE, WRITTEN)
    assert state.sequences["A"].block_table == [2, 0]
    assert state.blocks[2].slots == [SlotContent("A", 0, 10, "a"), SlotContent("A", 1, 11, "b")]
    assert state.blocks[0].slots == [SlotContent("A", 2, 12, "c"), None]
    assert list(state.free_block_queue) == [1, 3]
    assert state.counters.num_allocations == 2


def test_two_cursors():
    sampled = ev.TokenSampled(1, "A", 3, 13, "d")
    state = fold(POOL, ADDED, *TABLE, WRITTEN, sampled)
    assert (state.sequences["A"].num_tokens, state.sequences["A"].num_computed_tokens) == (4, 3)
    assert state.sequences["A"].pieces[-1] == "d"
    state.apply(ev.SlotsWritten(2, "A", 3, (1,)))
    assert state.sequences["A"].num_computed_tokens == 4
    assert state.step == 2


def test_a_freed_block_keeps_its_tokens_and_is_queued_by_whether_it_is_cached():
    stored = ev.BlockStored(1, 2, 99, None, (10, 11), 2, "A", 0)
    freed = [ev.BlockFreed(2, 0, "A", 1, 0, False), ev.BlockFreed(2, 2, "A", 0, 0, True)]
    state = fold(POOL, ADDED, *TABLE, WRITTEN, stored, *freed)
    assert list(state.free_block_queue) == [0, 1, 3, 2]
    assert (state.blocks[0].status, state.blocks[2].status) == ("free", "cached")
    assert state.blocks[0].slots[0] == SlotContent("A", 2, 12, "c")
    assert state.sequences["A"].block_table == []
    state.apply(ev.BlockRemoved(3, 2, 99))
    assert (state.blocks[2].status, state.counters.num_evictions) == ("free", 1)


def test_copy_on_write_moves_one_reference_and_the_written_slots():
    shared = [
        ev.SequenceForked(1, "A", "A#1", "A"),
        ev.BlockShared(1, 2, "A#1", 0, 2, "fork"),
        ev.BlockShared(1, 0, "A#1", 1, 2, "fork"),
    ]
    state = fold(POOL, ADDED, *TABLE, WRITTEN, *shared)
    assert state.blocks[0].owners == {"A": 1, "A#1": 1}
    state.apply(ev.BlockCopied(2, 0, 1, "A", 1, 1, 1))
    assert (state.blocks[0].owners, state.blocks[1].owners) == ({"A#1": 1}, {"A": 1})
    assert state.sequences["A"].block_table == [2, 1]
    assert state.sequences["A#1"].block_table == [2, 0]
    assert state.blocks[1].slots == [SlotContent("A", 2, 12, "c"), None]
    assert list(state.free_block_queue) == [3]
    assert state.counters.num_copies == 1


def test_a_permutation_moves_blocks_tables_and_queue():
    state = fold(POOL, ADDED, *TABLE, WRITTEN, ev.BlocksShuffled(2, (3, 2, 1, 0)))
    assert state.sequences["A"].block_table == [1, 3]
    assert state.blocks[1].slots[1] == SlotContent("A", 1, 11, "b")
    assert [block.block_id for block in state.blocks] == [0, 1, 2, 3]
    assert list(state.free_block_queue) == [2, 0]


def test_swap_out_and_swap_in():
    out = [
        ev.BlockSwappedOut(2, 2, 1, "A", 0),
        ev.BlockFreed(2, 0, "A", 1, 0, False),
        ev.BlockFreed(2, 2, "A", 0, 0, False),
    ]
    state = fold(POOL, ADDED, *TABLE, WRITTEN, ev.RequestPreempted(2, "A", "swap", "full"), *out)
    assert (state.requests["A"].status, state.requests["A"].reason) == ("swapped", "full")
    assert state.sequences["A"].cpu_block_table == [1]
    assert state.cpu_blocks[1].slots[0] == SlotContent("A", 0, 10, "a")
    assert state.sequences["A"].num_computed_tokens == 3
    state.apply(ev.BlockAllocated(3, 3, "A", 0))
    state.apply(ev.BlockSwappedIn(3, 1, 3, "A", 0))
    assert state.blocks[3].slots[1] == SlotContent("A", 1, 11, "b")
    assert (state.sequences["A"].cpu_block_table, state.cpu_blocks[1].owners) == ([], {})


def test_recompute_resets_num_computed_tokens():
    state = fold(POOL, ADDED, *TABLE, WRITTEN, ev.RequestPreempted(2, "A", "recompute", "full"))
    assert (state.requests["A"].status, state.sequences["A"].num_computed_tokens) == ("preempted", 0)
    assert state.counters.num_preemptions == 1


def test_prefix_look_ups_are_counted_apart_from_recomputation():
    state = fold(POOL, ADDED, ev.PrefixQueried(1, "A", 3, 2, False), ev.PrefixQueried(2, "A", 5, 4, True))
    counters = state.counters
    assert (counters.prefix_cache_queries, counters.prefix_cache_hits) == (3, 2)
    assert (counters.recompute_queries, counters.recompute_hits) == (5, 4)
    assert state.sequences["A"].num_computed_tokens == 4


def test_a_refused_duplicate_id_leaves_the_running_request_alone():
    refused = ev.RequestRefused(1, "A", "taken")
    state = fold(POOL, ADDED, ev.RequestAdmitted(1, "A", "waiting"), refused, ev.RequestRefused(1, "Z", "empty"))
    assert state.requests["A"].status == "running"
    assert (state.requests["Z"].status, state.requests["Z"].reason) == ("refused", "empty")
    assert state.counters.num_refused == 2
    assert "Z" not in state.sequences


def test_waiting_has_a_reason_until_the_request_starts():
    state = fold(POOL, ADDED, ev.AdmissionDeferred(1, "A", "no block is free"))
    assert (state.requests["A"].status, state.requests["A"].reason) == ("waiting", "no block is free")
    state.apply(ev.RequestAdmitted(2, "A", "waiting"))
    assert (state.requests["A"].status, state.requests["A"].reason) == ("running", "")


@given(st.lists(st.tuples(st.sampled_from(["take", "share", "free"]), st.integers(0, 9)), max_size=40))
def test_the_fold_and_the_live_pool_agree(actions):
    trace = Trace()
    pool = BlockPool(5, 2, trace, free_order=(3, 1))
    tables: dict[str, list[int]] = {}
    for action, number in actions:
        seq_ids = [seq_id for seq_id, table in tables.items() if table]
        if action == "free" and seq_ids:
            seq_id = seq_ids[number % len(seq_ids)]
            block_id = tables[seq_id].pop()
            pool.release(block_id, seq_id, len(tables[seq_id]))
            continue
        seq_id = f"s{len(tables)}"
        trace.append(ev.RequestAdded(0, seq_id, (), (), 1))
        tables[seq_id] = []
        if action == "take" and pool.num_free_blocks:
            tables[seq_id].append(pool.allocate(seq_id, 0))
        elif action == "share" and seq_ids:
            shared = tables[seq_ids[number % len(seq_ids)]][0]
            pool.share(shared, seq_id, 0, "fork")
            tables[seq_id].append(shared)
    state = trace.at(0)
    assert list(state.free_block_queue) == list(pool.free_block_queue)
    assert [block.ref_cnt for block in state.blocks] == [block.ref_cnt for block in pool.blocks]
    assert {seq_id: state.sequences[seq_id].block_table for seq_id in tables} == tables


# ---- contiguous ----


def test_a_region_counts_what_is_written_in_it():
    state = fold(ARENA, ADDED, REGION, ev.SlotsWritten(1, "A", 0, (2, 3)))
    assert (state.allocator, state.reservation) == ("first_fit", "Oracle")
    assert state.regions["A"].num_written == 2
    assert [slot.piece if slot else None for slot in state.arena] == [None, None, "a", "b", None, None, None, None]
    state.apply(ev.RegionFreed(2, "A", 2, 4))
    assert state.regions == {}
    assert state.arena[2] == SlotContent("A", 0, 10, "a")


# ---- contradictions ----


@pytest.mark.parametrize(
    ("events", "event", "detail"),
    [
        ([], ev.PoolCreated(0, 1, MAX_SLOTS + 1, 0, (0,)), f"a pool must have 1 to {MAX_SLOTS} slots"),
        ([], ev.PoolCreated(0, 1, 0, 0, (0,)), f"a pool must have 1 to {MAX_SLOTS} slots"),
        ([], ev.PoolCreated(0, 1, 2, 2, (0,)), "swap space is at most as large as the pool"),
        ([POOL], ARENA, "a trace has one memory"),
        ([POOL, ADDED, *TABLE], ev.BlockSwappedOut(1, 0, -1, "A", 1), "CPU block -1 is not one of 2"),
        ([POOL, ADDED, *TABLE], ev.BlockSwappedIn(1, 2, 0, "A", 1), "CPU block 2 is not one of 2"),
        ([], ev.PoolCreated(0, 2, 2, 0, (0, 0)), "the free queue must name every block once"),
        ([], ev.ArenaCreated(0, MAX_SLOTS + 1, "buddy", "Max"), f"an arena must have 1 to {MAX_SLOTS} slots"),
        ([], ev.ArenaCreated(0, 0, "buddy", "Max"), f"an arena must have 1 to {MAX_SLOTS} slots"),
        ([], ev.RequestAdded(0, "A", (1, 2), ("a",), 1), "a request needs one piece of text a prompt token"),
        ([], ev.RequestAdmitted(0, "A", "waiting"), "it names something that is not there"),
        ([POOL], ev.BlockAllocated(0, 2, "A", 0), "it names something that is not there"),
        ([POOL, ADDED, *TABLE], ev.BlockAllocated(1, 2, "A", 2), "it names something that is not there"),
        ([POOL, ADDED], ev.BlockAllocated(1, 2, "A", 1), "table entry 1 follows entry -1"),
        ([POOL, ADDED, *TABLE], ev.BlockFreed(1, 2, "A", 0, 0, False), "blocks are freed tail first"),
        ([POOL], ev.BlockStored(1, 4, 9, None, (), 2, "A", 0), "block 4 is not one of 4"),
        ([POOL], ev.BlockStored(1, -1, 9, None, (), 2, "A", 0), "block -1 is not one of 4"),
        ([POOL], ev.BlocksShuffled(1, (0, 1, 2)), "a permutation must name every block once"),
        ([POOL, ADDED], ev.TokenSampled(1, "A", 5, 1, "x"), "token 5 follows token 2"),
        ([POOL, ADDED, *TABLE], ev.SlotsWritten(1, "A", 0, (8,)), "block 4 is not one of 4"),
        ([POOL, ADDED, *TABLE], ev.SlotsWritten(1, "A", 0, (-1,)), "block -1 is not one of 4"),
        ([POOL, ADDED, *TABLE], ev.SlotsWritten(1, "A", 2, (0, 1)), "only known tokens can be written, and A has 3"),
        ([POOL, ADDED, *TABLE], ev.SlotsWritten(1, "A", -1, (0,)), "only known tokens can be written, and A has 3"),
        ([ADDED], ev.SlotsWritten(1, "A", 0, (0,)), "there is no memory to write into"),
        ([ARENA, ADDED], ev.SlotsWritten(1, "A", 0, (0,)), "it names something that is not there"),
        ([ARENA, ADDED, REGION], ev.SlotsWritten(1, "A", 0, (1,)), "slot 1 is not one that A asked for"),
        ([ARENA, ADDED, REGION], ev.SlotsWritten(1, "A", 0, (5,)), "slot 5 is not one that A asked for"),
        ([ARENA, ADDED], ev.RegionReserved(1, "A", 5, 4, 4), "the region lies outside memory"),
        ([ARENA, ADDED], ev.RegionReserved(1, "A", -1, 4, 4), "the region lies outside memory"),
        ([ARENA, ADDED], ev.RegionReserved(1, "A", 0, 4, 5), "a region of 4 slots is too small for 5"),
        ([ARENA, ADDED, REGION], ev.RegionReserved(1, "A", 6, 1, 1), ONE_EACH),
        ([ARENA], ev.RegionReserved(1, "A", 6, 1, 1), ONE_EACH),
        (
            [ARENA, ADDED, REGION, ev.RequestAdded(1, "B", (1,), ("b",), 1)],
            ev.RegionReserved(1, "B", 5, 2, 2),
            "the region overlaps another one",
        ),
        ([ARENA, ADDED, REGION], ev.RegionFreed(1, "A", 2, 3), NOT_THAT_ONE),
        ([ARENA, ADDED], ev.RegionFreed(1, "A", 2, 3), "it names something that is not there"),
    ],
)
def test_an_inconsistent_event_is_refused_with_step_type_and_reason(events, event, detail):
    state = fold(*events)
    with pytest.raises(ReplayError) as error:
        state.apply(event)
    assert str(error.value) == f"step {event.step}: {type(event).__name__} cannot be replayed: {detail}."


@pytest.mark.parametrize("cut", range(len(paged_trace())))
def test_a_copied_state_is_independent(cut):
    events = list(paged_trace())
    state = plain_fold(events[:cut])
    copy = state.copy()
    assert copy == state
    for event in events[cut:]:
        copy.apply(event)
    assert copy == plain_fold(events)
    assert state == plain_fold(events[:cut])
