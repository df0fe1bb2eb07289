"""Block tables without a model: growth on demand, forks, copy-on-write, prefix hits, swap, shuffle."""

from __future__ import annotations

import pytest

from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.manager import KVCacheManager
from engine.sequence import Sequence
from engine.trace.events import BlockAllocated, BlockCopied, BlockFreed, BlockShared, SlotsWritten
from engine.trace.trace import Trace


class Cache:
    """A manager with sequences one can write into."""

    def __init__(self, num_blocks: int = 8, block_size: int = 4, **kwargs) -> None:
        self.trace = Trace()
        self.pool = BlockPool(num_blocks, block_size, self.trace)
        self.kv = KVCacheManager(self.pool, **kwargs)

    def sequence(self, name: str, token_ids: list[int]) -> Sequence:
        return Sequence(name, 0, list(token_ids), len(token_ids))

    def write(self, seq: Sequence, count: int) -> bool:
        if not self.kv.allocate_slots(seq, count):
            return False
        self.kv.commit(seq, count)
        return True

    def events(self, kind: type) -> list:
        return [event for event in self.trace if isinstance(event, kind)]


def test_a_block_is_allocated_when_a_token_needs_a_slot():
    cache = Cache()
    seq = cache.sequence("A", list(range(9)))
    blocks_after = []
    for _ in range(9):
        assert cache.write(seq, 1)
        blocks_after.append(len(cache.kv.block_tables["A"]))
    assert blocks_after == [1, 1, 1, 1, 2, 2, 2, 2, 3]


def test_slots_follow_the_table():
    cache = Cache()
    seq = cache.sequence("A", list(range(6)))
    cache.write(seq, 6)
    cache.kv.block_tables["A"][:] = [5, 2]
    assert [cache.kv.slot("A", position) for position in range(6)] == [20, 21, 22, 23, 8, 9]


def test_a_failed_allocation_changes_nothing():
    cache = Cache(num_blocks=2)
    seq = cache.sequence("A", list(range(12)))
    before = len(cache.trace)
    assert not cache.write(seq, 9)
    assert len(cache.trace) == before
    assert cache.pool.num_free_blocks == 2


def test_a_fork_inside_a_block_copies_once_and_the_last_reference_writes_in_place():
    cache = Cache()
    parent = cache.sequence("A", list(range(6)))
    cache.write(parent, 6)
    children = [parent.fork(f"A#{i}", i) for i in (1, 2)]
    for child in children:
        cache.kv.fork(parent, child)
    assert cache.events(BlockCopied) == []
    assert [block.ref_cnt for block in cache.pool.blocks[:2]] == [3, 3]
    for seq in (parent, *children):
        seq.token_ids.append(9)
        cache.write(seq, 1)
    copies = [(e.seq_id, e.src_block_id, e.dst_block_id, e.num_slots, e.src_ref_cnt) for e in cache.events(BlockCopied)]
    assert copies == [("A", 1, 2, 2, 2), ("A#1", 1, 3, 2, 1)]
    assert cache.kv.block_tables == {"A": [0, 2], "A#1": [0, 3], "A#2": [0, 1]}


def test_a_fork_at_the_edge_of_a_block_copies_nothing():
    cache = Cache()
    parent = cache.sequence("A", list(range(4)))
    cache.write(parent, 4)
    child = parent.fork("A#1", 1)
    cache.kv.fork(parent, child)
    for seq in (parent, child):
        seq.token_ids.append(9)
        cache.write(seq, 1)
    assert cache.events(BlockCopied) == []
    assert cache.kv.block_tables == {"A": [0, 1], "A#1": [0, 2]}


def test_a_copy_needs_a_free_block_and_is_counted_beforehand():
    cache = Cache(num_blocks=2)
    parent = cache.sequence("A", list(range(6)))
    cache.write(parent, 6)
    child = parent.fork("A#1", 1)
    cache.kv.fork(parent, child)
    assert cache.kv.num_new_blocks(parent, 1) == 1
    assert not cache.write(parent, 1)
    cache.kv.free(child)
    assert cache.kv.num_new_blocks(parent, 1) == 0
    parent.token_ids.append(9)
    assert cache.write(parent, 1)


def test_blocks_are_freed_tail_first():
    cache = Cache()
    seq = cache.sequence("A", list(range(9)))
    cache.write(seq, 9)
    cache.kv.free(seq)
    assert [e.block_id for e in cache.events(BlockFreed)] == [2, 1, 0]


@pytest.mark.parametrize(("num_tokens", "num_hit_blocks"), [(4, 0), (5, 1), (8, 1), (9, 2), (12, 2)])
def test_a_hit_leaves_at_least_one_token_to_compute(num_tokens, num_hit_blocks):
    cache = Cache()
    first = cache.sequence("A", list(range(8)))
    cache.write(first, 8)
    second = cache.sequence("B", [*range(8), 50, 51, 52, 53][:num_tokens])
    assert len(cache.kv.find_prefix(second)) == num_hit_blocks


def test_a_block_is_cached_only_once_it_is_full_and_computed():
    cache = Cache()
    first = cache.sequence("A", list(range(8)))
    cache.write(first, 3)
    cache.kv.allocate_slots(first, 1)
    second = cache.sequence("B", list(range(8)))
    assert cache.kv.find_prefix(second) == []
    cache.kv.commit(first, 1)
    assert [block_id for block_id, _ in cache.kv.find_prefix(second)] == [0]


def test_without_prefix_caching_nothing_is_cached():
    cache = Cache(enable_prefix_caching=False)
    first = cache.sequence("A", list(range(8)))
    cache.write(first, 8)
    assert cache.kv.find_prefix(cache.sequence("B", list(range(9)))) == []


def test_swap_keeps_sharing_and_copies_shared_blocks_once():
    cache = Cache(num_cpu_blocks=4)
    parent = cache.sequence("A", list(range(6)))
    cache.write(parent, 6)
    child = parent.fork("A#1", 1)
    cache.kv.fork(parent, child)
    assert cache.kv.can_swap_out([parent, child])
    cache.kv.swap_out([parent, child])
    assert cache.kv.swap_space.tables == {"A": [0, 1], "A#1": [0, 1]}
    assert cache.kv.swap_space.num_free_blocks == 2
    assert cache.pool.num_free_blocks == 8
    assert cache.kv.num_blocks_to_swap_in([parent, child]) == 3, "two return; one of the two copies the shared tail"
    cache.kv.swap_in([parent, child])
    assert cache.kv.block_tables["A"] == cache.kv.block_tables["A#1"]
    assert [e.cause for e in cache.events(BlockShared)] == ["fork", "fork", "swap", "swap"]
    assert cache.kv.swap_space.num_free_blocks == 4


def test_a_permutation_updates_the_block_tables():
    cache = Cache(num_blocks=3)
    seq = cache.sequence("A", list(range(8)))
    cache.write(seq, 8)
    cache.kv.shuffle([2, 0, 1])
    assert cache.kv.block_tables["A"] == [2, 0]
    seq.token_ids.append(9)
    cache.write(seq, 1)
    assert cache.events(SlotsWritten)[-1].slots == (4,)
    assert cache.events(BlockAllocated)[-1].block_id == 1
