"""The block pool by itself: the pinned order of the free queue, counts, cached content."""

from __future__ import annotations

import pytest

from engine.kv_cache.block_pool import BlockPool, OutOfBlocksError
from engine.kv_cache.prefix_cache import PrefixNode
from engine.trace.events import BlockRemoved, PoolCreated
from engine.trace.trace import Trace


def pool_of(num_blocks: int, **kwargs) -> BlockPool:
    return BlockPool(num_blocks, 4, Trace(), **kwargs)


def node(*tokens: int, parent: PrefixNode | None = None) -> PrefixNode:
    return PrefixNode(parent, tokens, block_hash=hash(tokens) & 0xFFFF)


def test_blocks_are_handed_out_in_ascending_order():
    pool = pool_of(3)
    assert [pool.allocate("A", i) for i in range(3)] == [0, 1, 2]


def test_a_free_order_comes_first_and_the_rest_follows_ascending():
    pool = pool_of(9, free_order=(6, 1, 8))
    assert list(pool.free_block_queue) == [6, 1, 8, 0, 2, 3, 4, 5, 7]
    assert isinstance(pool.trace.events[0], PoolCreated)
    assert pool.trace.events[0].free_block_queue == (6, 1, 8, 0, 2, 3, 4, 5, 7)


@pytest.mark.parametrize("order", [(0, 0), (3,), (-1,)])
def test_a_free_order_must_name_blocks_once(order):
    with pytest.raises(ValueError, match="each at most once"):
        pool_of(3, free_order=order)


def test_an_empty_pool_raises():
    pool = pool_of(1)
    pool.allocate("A", 0)
    with pytest.raises(OutOfBlocksError, match="All 1 blocks are in use"):
        pool.allocate("A", 1)


def test_a_double_free_raises():
    pool = pool_of(1)
    pool.allocate("A", 0)
    pool.release(0, "A", 0)
    with pytest.raises(ValueError, match="free already"):
        pool.drop_reference(pool.blocks[0])


def test_freed_blocks_without_content_are_reused_first():
    pool = pool_of(5)
    for index in range(3):
        pool.allocate("A", index)
    for index in (2, 1, 0):
        pool.release(index, "A", index)
    assert list(pool.free_block_queue) == [0, 1, 2, 3, 4]


def test_freed_blocks_with_content_are_kept_longest():
    """vllm 51482: the order after freeing a 3-block request, its last block half full."""
    pool = pool_of(5)
    for index in range(3):
        pool.allocate("A", index)
    first = node(1, 2, 3, 4)
    pool.cache_block(0, first, "A", 0)
    pool.cache_block(1, node(5, 6, 7, 8, parent=first), "A", 1)
    for index in (2, 1, 0):
        pool.release(index, "A", index)
    assert list(pool.free_block_queue) == [2, 3, 4, 1, 0]


def test_a_cached_block_is_evicted_on_allocation_not_on_free():
    pool = pool_of(1)
    pool.allocate("A", 0)
    kept = PrefixNode(None, (1, 2, 3, 4), pool.hash_block_tokens(None, (1, 2, 3, 4)))
    pool.cache_block(0, kept, "A", 0)
    pool.release(0, "A", 0)
    assert pool.get_cached_block(None, (1, 2, 3, 4)) == (0, kept)
    pool.allocate("B", 0)
    assert pool.get_cached_block(None, (1, 2, 3, 4)) is None
    assert [e.block_id for e in pool.trace if isinstance(e, BlockRemoved)] == [0]


def test_a_hit_takes_a_cached_block_out_of_the_free_queue():
    pool = pool_of(2)
    pool.allocate("A", 0)
    pool.cache_block(0, node(1, 2, 3, 4), "A", 0)
    pool.release(0, "A", 0)
    pool.share(0, "B", 0, "prefix_cache")
    assert list(pool.free_block_queue) == [1]
    assert pool.blocks[0].ref_cnt == 1


def test_hash_collisions_still_find_the_right_block():
    pool = pool_of(4, hash_block_tokens=lambda _parent, _tokens: 7)
    roots = [PrefixNode(None, (9, 9, 9, 9), 7), PrefixNode(None, (8, 8, 8, 8), 7)]
    children = [PrefixNode(root, (1, 2, 3, 4), 7) for root in roots]
    for block_id, content in enumerate([*roots, *children]):
        pool.allocate("A", block_id)
        pool.cache_block(block_id, content, "A", block_id)
    assert pool.get_cached_block(roots[0], (1, 2, 3, 4)) == (2, children[0])
    assert pool.get_cached_block(roots[1], (1, 2, 3, 4)) == (3, children[1])
    assert pool.get_cached_block(None, (1, 2, 3, 4)) is None


def test_a_recomputed_parent_finds_its_cached_children():
    """Unreachable is not lost: equal chains are equal content, whoever computed them."""
    pool = pool_of(2)
    parent = PrefixNode(None, (1, 1, 1, 1), pool.hash_block_tokens(None, (1, 1, 1, 1)))
    child = PrefixNode(parent, (2, 2, 2, 2), pool.hash_block_tokens(parent.block_hash, (2, 2, 2, 2)))
    pool.allocate("A", 0)
    pool.allocate("A", 1)
    pool.cache_block(0, parent, "A", 0)
    pool.cache_block(1, child, "A", 1)
    pool.evict(pool.blocks[0])
    assert pool.get_cached_block(None, (1, 1, 1, 1)) is None
    again = PrefixNode(None, (1, 1, 1, 1), parent.block_hash)
    pool.cache_block(0, again, "B", 0)
    assert pool.get_cached_block(again, (2, 2, 2, 2)) == (1, child)


def test_two_blocks_may_cache_the_same_content_and_be_evicted_apart():
    pool = pool_of(2)
    for block_id in (0, 1):
        pool.allocate("A", block_id)
        pool.cache_block(block_id, node(1, 2, 3, 4), "A", block_id)
    pool.hash_block_tokens = lambda _parent, tokens: hash(tokens) & 0xFFFF
    assert pool.get_cached_block(None, (1, 2, 3, 4))[0] == 0
    pool.evict(pool.blocks[0])
    assert pool.get_cached_block(None, (1, 2, 3, 4))[0] == 1


def test_permuting_moves_references_content_and_queue_positions():
    pool = pool_of(3)
    pool.allocate("A", 0)
    pool.cache_block(0, node(1, 2, 3, 4), "A", 0)
    pool.permute([2, 0, 1])
    assert [block.block_id for block in pool.blocks] == [0, 1, 2]
    assert [block.ref_cnt for block in pool.blocks] == [0, 0, 1]
    assert list(pool.free_block_queue) == [0, 1]
    assert pool.blocks[2].node is not None


def test_clearing_the_cache_keeps_references_and_queue_order():
    pool = pool_of(2)
    pool.allocate("A", 0)
    pool.cache_block(0, node(1, 2, 3, 4), "A", 0)
    pool.clear_prefix_cache()
    assert pool.blocks[0].ref_cnt == 1
    assert pool.blocks[0].node is None
    assert list(pool.free_block_queue) == [1]
