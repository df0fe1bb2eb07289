"""Which content is cached, folded from `BlockStored`, `BlockRemoved` and the like: a multiset of copies per hash.

Servers do not say where a block lies, so content is all there is to know: blocks by hash, each behind its parent, as
many copies as were stored and not removed. Equal engines behind one server (data-parallel ranks) are kept apart.
Values are immutable, so a copy of a view costs a few dictionaries and shares the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from engine.trace import cache_events as ev
from engine.trace.cache_events import BlockHash

MAX_BLOCKS, MAX_TOKENS = 1 << 17, 1 << 22
"""Different blocks, and tokens in them, over all ranks. A stream that stores for ever and never removes loses its
oldest, and is told so."""

Place = tuple[str | None, int | None]
"""`(medium, group_idx)`: copies in different stores are removed apart."""


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One content. `step`: when its first copy was stored. `places`: one entry a copy."""

    block_hash: BlockHash
    parent_block_hash: BlockHash | None
    token_ids: tuple[int, ...]
    block_size: int
    step: int
    places: tuple[Place, ...]

    @property
    def num_copies(self) -> int:
        """How many copies of this content are stored."""
        return len(self.places)


@dataclass
class RankView:
    """What one engine holds. `blocks` is in order of storing.

    num_copies: all copies of all blocks. num_tokens: in one copy of each. num_stored, num_removed: events so far.
    num_unknown_removed: removals of blocks never seen stored. num_forgotten: blocks dropped here at the limit, which
    the server may still hold. partial_since: the first step after which messages are missing, or None; missed: the
    numbers of those messages. started_over: the step at which the server was seen to have restarted, or None.
    """

    blocks: dict[BlockHash, StoredBlock] = field(default_factory=dict)
    num_copies: int = 0
    num_tokens: int = 0
    num_stored: int = 0
    num_removed: int = 0
    num_unknown_removed: int = 0
    num_forgotten: int = 0
    partial_since: int | None = None
    missed: tuple[int, int] | None = None
    started_over: int | None = None

    def copy(self) -> RankView:
        """An independent copy."""
        return replace(self, blocks=self.blocks.copy())

    def store(self, event: ev.BlockStored) -> None:
        """Add a copy of a block."""
        place: Place = (event.medium, event.group_idx)
        known = self.blocks.get(event.block_hash)
        if known is None:
            self.blocks[event.block_hash] = StoredBlock(
                event.block_hash, event.parent_block_hash, event.token_ids, event.block_size, event.step, (place,)
            )
            self.num_tokens += len(event.token_ids)
        else:
            self.blocks[event.block_hash] = replace(known, places=(*known.places, place))
        self.num_copies += 1
        self.num_stored += 1

    def remove(self, event: ev.BlockRemoved) -> None:
        """Remove a copy of a block; one that was never seen stored is counted as unknown."""
        self.num_removed += 1
        known = self.blocks.get(event.block_hash)
        place = None if known is None else _place_of(known, (event.medium, event.group_idx))
        if known is None or place is None:
            self.num_unknown_removed += 1
            return
        left = list(known.places)
        left.remove(place)
        self.num_copies -= 1
        if left:
            self.blocks[event.block_hash] = replace(known, places=tuple(left))
        else:
            del self.blocks[event.block_hash]
            self.num_tokens -= len(known.token_ids)

    def clear(self) -> None:
        """Empty, and whole again: of an empty cache nothing is missing."""
        self.blocks.clear()
        self.num_copies = self.num_tokens = 0
        self.num_forgotten = 0
        self.partial_since = self.missed = None

    def forget_oldest(self) -> None:
        """Drop the block stored first, with all its copies."""
        oldest = self.blocks.pop(next(iter(self.blocks)))
        self.num_copies -= oldest.num_copies
        self.num_tokens -= len(oldest.token_ids)
        self.num_forgotten += 1


@dataclass
class CacheView:
    """The engines behind one source, by data-parallel rank. An engine without a rank is rank 0."""

    ranks: dict[int, RankView] = field(default_factory=dict)

    @property
    def num_blocks(self) -> int:
        """Different blocks, over all ranks."""
        return sum(len(view.blocks) for view in self.ranks.values())

    @property
    def num_copies(self) -> int:
        """Copies of all blocks, over all ranks."""
        return sum(view.num_copies for view in self.ranks.values())

    @property
    def num_tokens(self) -> int:
        """In one copy of each block."""
        return sum(view.num_tokens for view in self.ranks.values())

    @property
    def partial_since(self) -> int | None:
        """The first step from which anything is missing, or None."""
        return min((v.partial_since for v in self.ranks.values() if v.partial_since is not None), default=None)

    def of(self, rank: int | None) -> RankView:
        """The view of one rank, empty when it is new."""
        view = self.ranks.get(rank or 0)
        if view is None:
            view = self.ranks[rank or 0] = RankView()
        return view

    def copy(self) -> CacheView:
        """An independent copy: folding on does not change this one."""
        return CacheView({rank: view.copy() for rank, view in self.ranks.items()})

    def store(self, event: ev.BlockStored) -> None:
        """Add a copy of a block to its rank, and drop the oldest blocks above MAX_BLOCKS or MAX_TOKENS."""
        view = self.of(event.data_parallel_rank)
        view.store(event)
        while view.blocks and (self.num_blocks > MAX_BLOCKS or self.num_tokens > MAX_TOKENS):
            view.forget_oldest()

    def remove(self, event: ev.BlockRemoved) -> None:
        """Remove a copy of a block from its rank."""
        self.of(event.data_parallel_rank).remove(event)

    def miss(self, event: ev.MessagesMissed) -> None:
        """Note that messages are missing: the view of this rank is partial from here on."""
        view = self.of(event.data_parallel_rank)
        if view.partial_since is None:
            view.partial_since, view.missed = event.step, (event.first, event.last)

    def restart(self, event: ev.ServerRestarted) -> None:
        """Start the rank's view over, empty."""
        self.ranks[event.data_parallel_rank or 0] = RankView(started_over=event.step)

    def clear(self, event: ev.AllBlocksCleared) -> None:
        """Empty the rank's cache."""
        self.of(event.data_parallel_rank).clear()


def _place_of(block: StoredBlock, wanted: Place) -> Place | None:
    """The copy that a removal refers to: the same place, or any when one of the two has no medium."""
    if wanted in block.places:
        return wanted
    medium, _group = wanted
    return next((place for place in block.places if medium is None or place[0] is None), None)
