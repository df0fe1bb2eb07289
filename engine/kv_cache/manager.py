"""KVCacheManager: block tables over the pool. Grow, fork, copy on write, free, swap, shuffle.

Usable without a model and without torch: `store` moves the actual keys and values when there are any.

What a step does to one table, block_size 4, `start` = num_computed_tokens = 6, 3 new tokens:

    table      [ 7 ][ 2 ]                     6 tokens written: block 7 full, block 2 half full
    positions   0-3  4-5 | 6 7 8
    write       6, 7 into block 2 -> copied first when another table references block 2 (copy-on-write)
                8 needs a slot    -> one free block is taken now, not earlier (growth on demand)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.prefix_cache import PrefixNode
from engine.kv_cache.swap_space import SwapSpace
from engine.trace.events import BlockCopied, BlockSwappedIn, BlockSwappedOut, ShareCause, SlotsWritten
from engine.trace.validation import checked_permutation

PrefixHit = list[tuple[int, PrefixNode]]
"""Cached blocks that hold a sequence's first tokens, in order."""


class KVSequence(Protocol):
    """What the cache reads of a sequence; it also moves the two cursors (see engine/sequence.py)."""

    seq_id: str
    token_ids: list[int]
    num_prompt_tokens: int
    num_computed_tokens: int
    num_ever_computed: int

    @property
    def num_tokens(self) -> int:
        """Tokens known so far."""
        ...


class BlockStore(Protocol):
    """The data behind the block ids: `engine/model/kv_store.py` on a device; scripts and lessons have none."""

    def copy_block(self, src_block_id: int, dst_block_id: int) -> None:
        """Copy one whole block (copy-on-write)."""
        ...

    def swap_out(self, src_to_dst: Sequence[tuple[int, int]]) -> None:
        """Copy blocks to CPU memory: (device block, CPU block)."""
        ...

    def swap_in(self, src_to_dst: Sequence[tuple[int, int]]) -> None:
        """Copy blocks back: (CPU block, device block)."""
        ...

    def permute(self, permutation: Sequence[int]) -> None:
        """Move block `i` to `permutation[i]`."""
        ...


class KVCacheManager:
    """All block tables of one engine. `block_tables[seq_id]` lists physical block ids in logical order."""

    def __init__(
        self,
        pool: BlockPool,
        *,
        enable_prefix_caching: bool = True,
        num_cpu_blocks: int = 0,
        store: BlockStore | None = None,
    ) -> None:
        self.pool = pool
        self.block_size = pool.block_size
        self.trace = pool.trace
        self.enable_prefix_caching = enable_prefix_caching
        self.store = store
        self.swap_space = SwapSpace(num_cpu_blocks)
        self.block_tables: dict[str, list[int]] = {}
        self._nodes: dict[str, list[PrefixNode]] = {}

    def num_blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size)

    # -- growth on demand --

    def num_new_blocks(self, seq: KVSequence, num_new_tokens: int) -> int:
        """Free blocks that writing `num_new_tokens` more would take, the copy-on-write one included."""
        table = self.block_tables.get(seq.seq_id, [])
        growth = self.num_blocks_for(seq.num_computed_tokens + num_new_tokens) - len(table)
        return growth + self._writes_shared_block(seq, table)

    def allocate_slots(self, seq: KVSequence, num_new_tokens: int) -> bool:
        """Make room for the next tokens. False, with nothing changed, when the pool lacks the blocks."""
        if self._has_room(seq, num_new_tokens):
            return True
        num_new_blocks = self.num_new_blocks(seq, num_new_tokens)
        if num_new_blocks == 0:
            return True
        if num_new_blocks > self.pool.num_free_blocks:
            return False
        table = self.block_tables.setdefault(seq.seq_id, [])
        if self._writes_shared_block(seq, table):
            self._copy_on_write(seq, table)
        while len(table) < self.num_blocks_for(seq.num_computed_tokens + num_new_tokens):
            table.append(self.pool.allocate(seq.seq_id, len(table)))
        return True

    def _has_room(self, seq: KVSequence, num_new_tokens: int) -> bool:
        """Whether the last block is the sequence's own and has the slots: nearly every decode step."""
        table = self.block_tables.get(seq.seq_id)
        return (
            table is not None
            and len(table) > 0
            and seq.num_computed_tokens + num_new_tokens <= len(table) * self.block_size
            and self.pool.blocks[table[-1]].ref_cnt == 1
        )

    def commit(self, seq: KVSequence, num_new_tokens: int) -> None:
        """The tokens' keys and values are written: move the cursor, then cache full blocks."""
        start = seq.num_computed_tokens
        end = seq.num_computed_tokens = start + num_new_tokens
        if end > seq.num_ever_computed:
            seq.num_ever_computed = end
        slots = slots_of(self.block_tables[seq.seq_id], start, end, self.block_size)
        self.trace.append(SlotsWritten(self.trace.step, seq.seq_id, start, tuple(slots)))
        if self.enable_prefix_caching and start // self.block_size < end // self.block_size:
            self._cache_full_blocks(seq)

    def slot(self, seq_id: str, position: int) -> int:
        """Where the token at `position` lives: `block_table[position // B] * B + position % B`."""
        return slots_of(self.block_tables[seq_id], position, position + 1, self.block_size)[0]

    def _writes_shared_block(self, seq: KVSequence, table: list[int]) -> bool:
        """Whether the next token is written into a partly filled block that other tables reference, too."""
        if seq.num_computed_tokens % self.block_size == 0 or not table:
            return False
        return self.pool.blocks[table[-1]].ref_cnt > 1

    def _copy_on_write(self, seq: KVSequence, table: list[int]) -> None:
        source, target = self.pool.blocks[table[-1]], self.pool.take_free_block()
        if self.store:
            self.store.copy_block(source.block_id, target.block_id)
        self.pool.drop_reference(source)
        table[-1] = target.block_id
        self.trace.append(
            BlockCopied(
                self.trace.step,
                source.block_id,
                target.block_id,
                seq.seq_id,
                len(table) - 1,
                seq.num_computed_tokens % self.block_size,
                source.ref_cnt,
            )
        )

    # -- sharing by content (vLLM V1) --

    def find_prefix(self, seq: KVSequence, sibling: KVSequence | None = None) -> PrefixHit:
        """Cached blocks that hold the sequence's first tokens; one token is left to compute, for its logits.

        With a `sibling` its own blocks of their common tokens come first, so that the group holds no second copy;
        the hit ends before one of them that is not cached.
        """
        if not self.enable_prefix_caching:
            return []
        hit: PrefixHit = []
        if sibling is not None:
            num_common_blocks = num_common_tokens(sibling, seq) // self.block_size
            hit = self._cached_prefix_of(sibling, num_common_blocks)
            if len(hit) < num_common_blocks:
                return hit
        parent = hit[-1][1] if hit else None
        for index in range(len(hit), (seq.num_tokens - 1) // self.block_size):
            found = self.pool.get_cached_block(parent, self._block_tokens(seq, index))
            if found is None:
                break
            hit.append(found)
            parent = found[1]
        return hit

    def _cached_prefix_of(self, seq: KVSequence, num_blocks: int) -> PrefixHit:
        """The first `num_blocks` blocks of the sequence's own table, up to the first that is not cached."""
        hit: PrefixHit = []
        for block_id in self.block_tables[seq.seq_id][:num_blocks]:
            node = self.pool.blocks[block_id].node
            if node is None:
                break
            hit.append((block_id, node))
        return hit

    def num_blocks_to_start(self, sequences: Sequence[KVSequence], hit: PrefixHit) -> int:
        """Free blocks that a start of a whole group takes for all tokens it knows.

        `hit` is what the prefix cache holds of the first sequence; hits that lie in the free queue count. Of each
        other one only the full blocks in common with a sibling are not counted again: those it always shares.
        """
        revived = sum(self.pool.blocks[block_id].ref_cnt == 0 for block_id, _index in hit)
        first = self.num_blocks_for(sequences[0].num_tokens) - len(hit) + revived
        others = (self._num_own_blocks(seq, sequences[:i]) for i, seq in enumerate(sequences) if i > 0)
        return first + sum(others)

    def _num_own_blocks(self, seq: KVSequence, siblings: Sequence[KVSequence]) -> int:
        """Blocks for all its tokens that it will not share with a sibling, whichever of them starts first."""
        common = (min(num_common_tokens(one, seq), one.num_tokens - 1) for one in siblings)
        return self.num_blocks_for(seq.num_tokens) - max(common, default=0) // self.block_size

    def allocate_cached_blocks(self, seq: KVSequence, hit: PrefixHit) -> int:
        """Start the sequence's table with the blocks of the hit. Returns the number of tokens they hold."""
        table = self.block_tables.setdefault(seq.seq_id, [])
        for block_id, node in hit:
            self.pool.share(block_id, seq.seq_id, len(table), "prefix_cache")
            table.append(block_id)
            self._nodes.setdefault(seq.seq_id, []).append(node)
        seq.num_computed_tokens = len(hit) * self.block_size
        return seq.num_computed_tokens

    def _cache_full_blocks(self, seq: KVSequence) -> None:
        table, nodes = self.block_tables[seq.seq_id], self._nodes.setdefault(seq.seq_id, [])
        for index in range(len(nodes), seq.num_computed_tokens // self.block_size):
            parent = nodes[-1] if nodes else None
            tokens = self._block_tokens(seq, index)
            block_hash = self.pool.hash_block_tokens(parent.block_hash if parent else None, tokens)
            nodes.append(PrefixNode(parent, tokens, block_hash))
            self.pool.cache_block(table[index], nodes[index], seq.seq_id, index)

    def _block_tokens(self, seq: KVSequence, logical_index: int) -> tuple[int, ...]:
        start = logical_index * self.block_size
        return tuple(seq.token_ids[start : start + self.block_size])

    # -- sharing by fork (the paper) --

    def fork(self, parent: KVSequence, child: KVSequence) -> None:
        """The child references every block of the parent, a partly filled last one too. Nothing is copied yet."""
        self._share_table(parent, child, len(self.block_tables.get(parent.seq_id, [])), "fork")

    def share_full_blocks(self, sibling: KVSequence, seq: KVSequence, num_tokens: int) -> int:
        """Start the table with the sibling's full blocks of their first `num_tokens` common tokens."""
        num_blocks = num_tokens // self.block_size
        self._share_table(sibling, seq, num_blocks, "sibling")
        seq.num_computed_tokens = num_blocks * self.block_size
        return seq.num_computed_tokens

    def _share_table(self, source: KVSequence, seq: KVSequence, num_blocks: int, cause: ShareCause) -> None:
        for index, block_id in enumerate(self.block_tables.get(source.seq_id, [])[:num_blocks]):
            self.pool.share(block_id, seq.seq_id, index, cause)
            self.block_tables.setdefault(seq.seq_id, []).append(block_id)
        self._nodes[seq.seq_id] = self._nodes.get(source.seq_id, [])[:num_blocks]

    # -- freeing --

    def free(self, seq: KVSequence) -> None:
        """Give back every block, tail first so that prefixes are kept longest; swapped blocks too."""
        self._free_device_blocks(seq)
        self.swap_space.release(seq.seq_id)

    def release_unwritten(self, seq: KVSequence) -> None:
        """Give back blocks taken for tokens that did not run after all, because the request had to make room."""
        table = self.block_tables.get(seq.seq_id, [])
        while len(table) > self.num_blocks_for(seq.num_computed_tokens):
            self.pool.release(table.pop(), seq.seq_id, len(table))

    # -- swap (paper section 4.5) --

    def can_swap_out(self, sequences: Iterable[KVSequence]) -> bool:
        """Whether the swap space has a free block for each of theirs, shared ones counted once."""
        blocks = {b for seq in sequences for b in self.block_tables.get(seq.seq_id, [])}
        return len(blocks) <= self.swap_space.num_free_blocks

    def swap_out(self, sequences: Sequence[KVSequence]) -> None:
        """Copy all blocks of these sequences to CPU blocks, shared ones once, and free them here."""
        home: dict[int, int] = {}
        for seq in sequences:
            for index, block_id in enumerate(self.block_tables.get(seq.seq_id, [])):
                if block_id not in home:
                    home[block_id] = self.swap_space.allocate()
                self.swap_space.add_reference(seq.seq_id, home[block_id])
                self.trace.append(BlockSwappedOut(self.trace.step, block_id, home[block_id], seq.seq_id, index))
        if self.store and home:
            self.store.swap_out(list(home.items()))
        for seq in sequences:
            self._free_device_blocks(seq)

    def num_blocks_to_swap_in(self, sequences: Sequence[KVSequence]) -> int:
        """Free blocks a return takes, with room for all tokens the group knows: it need not leave at once.

        Of the sequences that share a partly filled block all but the last will copy it. Sequences that had no block
        yet when the group was swapped out start after the return, and share with those that did.
        """
        tables = self.swap_space.tables
        started = [seq for seq in sequences if tables.get(seq.seq_id)]
        returning = {block_id for seq in started for block_id in tables[seq.seq_id]}
        growth = sum(self.num_blocks_for(seq.num_tokens) - len(tables[seq.seq_id]) for seq in started)
        shared_tails = [tables[s.seq_id][-1] for s in started if self._started_and_shared(s, tables[s.seq_id])]
        own = 0
        for seq in [seq for seq in sequences if seq not in started]:
            own += self._num_own_blocks(seq, started)
            started.append(seq)
        return len(returning) + growth + len(shared_tails) - len(set(shared_tails)) + own

    def swap_in(self, sequences: Sequence[KVSequence]) -> None:
        """Bring the blocks back into free blocks of the pool; sequences share again what they shared before.

        Full blocks are cached at once, as after `commit`.
        """
        home: dict[int, int] = {}
        for seq in [seq for seq in sequences if seq.seq_id in self.swap_space.tables]:
            table = self.block_tables.setdefault(seq.seq_id, [])
            for index, cpu_block_id in enumerate(self.swap_space.tables[seq.seq_id]):
                if cpu_block_id in home:
                    self.pool.share(home[cpu_block_id], seq.seq_id, index, "swap")
                else:
                    home[cpu_block_id] = self.pool.allocate(seq.seq_id, index)
                table.append(home[cpu_block_id])
                self.trace.append(BlockSwappedIn(self.trace.step, cpu_block_id, table[index], seq.seq_id, index))
            self.swap_space.release(seq.seq_id)
        if self.store and home:
            self.store.swap_in(list(home.items()))
        if self.enable_prefix_caching:
            for seq in sequences:
                if seq.seq_id in self.block_tables:
                    self._cache_full_blocks(seq)

    def _started_and_shared(self, seq: KVSequence, cpu_table: list[int]) -> bool:
        if seq.num_computed_tokens % self.block_size == 0 or not cpu_table:
            return False
        return self.swap_space.ref_cnts[cpu_table[-1]] > 1

    def _free_device_blocks(self, seq: KVSequence) -> None:
        table = self.block_tables.pop(seq.seq_id, [])
        for index in reversed(range(len(table))):
            self.pool.release(table[index], seq.seq_id, index)
        self._nodes.pop(seq.seq_id, None)

    # -- permutation of physical blocks (the shuffle experiment) --

    def shuffle(self, permutation: Sequence[int]) -> None:
        """Move every block to a new place and follow with every table: old block `i` becomes `permutation[i]`.

        Raises ValueError, with nothing moved, unless every block id appears exactly once.
        """
        moved_to = checked_permutation(permutation, self.pool.num_blocks)
        if self.store:
            self.store.permute(moved_to)
        self.pool.permute(moved_to)
        for table in self.block_tables.values():
            table[:] = [moved_to[block_id] for block_id in table]


def slots_of(block_table: Sequence[int], start: int, end: int, block_size: int) -> list[int]:
    """Slots of positions start .. end - 1: `block_table[position // B] * B + position % B`."""
    if end - start == 1:  # a decode step asks for one
        return [block_table[start // block_size] * block_size + start % block_size]
    return [block_table[position // block_size] * block_size + position % block_size for position in range(start, end)]


def num_common_tokens(one: KVSequence, other: KVSequence) -> int:
    """Leading tokens that two sequences of one group both know, leaving at least one of `other`'s to compute."""
    limit = min(one.num_tokens, other.num_tokens - 1)
    start = min(limit, other.num_prompt_tokens)
    return next((i for i in range(start, limit) if one.token_ids[i] != other.token_ids[i]), limit)
