"""The prefix cache, read from a trace: what is cached, what is evicted next, and why a block was a hit or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.trace.cache_events import BlockHash
from engine.trace.events import PrefixQueried
from engine.trace.state import BlockState, CacheState
from engine.trace.trace import Trace

Outcome = Literal["hit", "miss", "after a miss", "last token", "not full"]


@dataclass(frozen=True, slots=True)
class CachedBlock:
    """A full block that can be found by its hash. queue_index: its place in the free queue, None while it is in use."""

    block_id: int
    block_hash: BlockHash
    parent_block_hash: BlockHash | None
    pieces: tuple[str, ...]
    ref_cnt: int
    queue_index: int | None


@dataclass(frozen=True, slots=True)
class BlockLookup:
    """One block of a request when the prefix cache was asked for it.

    block_id: where a hit was found; of a miss, a block with the same tokens behind other ones, if there was one.
    """

    logical_index: int
    pieces: tuple[str, ...]
    outcome: Outcome
    block_id: int | None


def cached_blocks(state: CacheState) -> list[CachedBlock]:
    """Every cached block, by id."""
    places = {block_id: index for index, block_id in enumerate(state.free_block_queue)}
    stored = state.prefix_cache.of(None).blocks
    return [
        CachedBlock(
            block.block_id,
            block.block_hash,
            stored[block.block_hash].parent_block_hash,
            tuple(content.piece for content in block.slots if content is not None),
            block.ref_cnt,
            places.get(block.block_id),
        )
        for block in state.blocks
        if block.block_hash is not None
    ]


def next_evicted(state: CacheState) -> int | None:
    """The first cached block of the free queue: those before it hold nothing that can be found."""
    return next((i for i in state.free_block_queue if state.blocks[i].block_hash is not None), None)


def prefix_queries(trace: Trace) -> list[PrefixQueried]:
    """Each time the prefix cache was asked, oldest first."""
    return [event for event in trace if isinstance(event, PrefixQueried)]


def lookups_of(trace: Trace, query: PrefixQueried) -> list[BlockLookup]:
    """What became of each block of the sequence that asked, in order."""
    return list(_lookups(_state_at(trace, query), query))


def _lookups(state: CacheState, query: PrefixQueried) -> Iterator[BlockLookup]:
    sequence, size = state.sequences[query.seq_id], state.block_size
    num_hits = query.num_hit_tokens // size
    for index in range(-(-query.num_query_tokens // size)):
        first, end = index * size, min((index + 1) * size, query.num_query_tokens)
        pieces = tuple(sequence.pieces[first:end])
        if index < num_hits:
            yield BlockLookup(index, pieces, "hit", sequence.block_table[index])
        elif end - first < size:
            yield BlockLookup(index, pieces, "not full", None)
        elif end == query.num_query_tokens and index == num_hits:
            yield BlockLookup(index, pieces, "last token", None)
        elif index > num_hits:
            yield BlockLookup(index, pieces, "after a miss", None)
        else:
            yield BlockLookup(index, pieces, "miss", _same_tokens(state, tuple(sequence.token_ids[first:end])))


def _same_tokens(state: CacheState, token_ids: tuple[int, ...]) -> int | None:
    stored = state.prefix_cache.of(None).blocks

    def holds(block: BlockState) -> bool:
        return block.block_hash in stored and stored[block.block_hash].token_ids == token_ids

    return next((block.block_id for block in state.blocks if holds(block)), None)


def _state_at(trace: Trace, query: PrefixQueried) -> CacheState:
    """Right after the query: its hits stand in the block table, nothing else has been taken."""
    state = trace.at(query.step - 1) if query.step else CacheState()
    for event in trace.events_of(query.step):
        state.apply(event)
        if event is query:
            break
    return state
