"""KVCacheManager: block tables over the pool. Grow, fork, copy on write, free, swap, shuffle.

Usable without a model and without torch: `store` moves the actual keys and values when there are any.

What a step does to one table, block_size 4, `start` = num_computed_tokens = 6, 3 new tokens:

    table      [ 7 ][ 2 ]                     6 tokens written: block 7 full, block 2 half full
    positions   0-3  4-5 | 6 7 8
    write       6, 7 into block 2 -> copied first when another table names block 2 (copy-on-write)
                8 needs a slot    -> one free block is taken now, not earlier (growth on demand)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from engine.block_pool import BlockPool
from engine.events import BlockCopied, BlockSwappedIn, BlockSwappedOut, ShareCause, SlotsWritten
from engine.prefix import PrefixNode
from engine.sequence import Sequence as TokenSequence
from engine.slots import slots_of
from engine.swap_space import SwapSpace

PrefixHit = list[tuple[int, PrefixNode]]
"""Cached blocks that hold a sequence's first tokens, in order."""


class BlockStore(Protocol):
    """Whoever holds the data of the blocks: `engine/kv_store.py` on a device, nobody in a lesson."""

    def copy_block(self, src_block_id: int, dst_block_id: int) -> None: ...
    def swap_out(self, src_to_dst: Sequence[tuple[int, int]]) -> None: ...
    def swap_in(self, src_to_dst: Sequence[tuple[int, int]]) -> None: ...
    def permute(self, permutation: Sequence[int]) -> None: ...


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
        return -(-num_tokens // self.block_size)

    # -- growth on demand --

    def num_new_blocks(self, seq: TokenSequence, num_new_tokens: int) -> int:
        """Free blocks that writing `num_new_tokens` more would take, the copy-on-write one included."""
        table = self.block_tables.get(seq.seq_id, [])
        growth = self.num_blocks_for(seq.num_computed_tokens + num_new_tokens) - len(table)
        return growth + self._writes_shared_block(seq, table)

    def allocate_slots(self, seq: TokenSequence, num_new_tokens: int) -> bool:
        """Make room for the next tokens. False, with nothing changed, when the pool lacks the blocks."""
        if self.num_new_blocks(seq, num_new_tokens) > self.pool.num_free_blocks:
            return False
        table = self.block_tables.setdefault(seq.seq_id, [])
        if self._writes_shared_block(seq, table):
            self._copy_on_write(seq, table)
        while len(table) < self.num_blocks_for(seq.num_computed_tokens + num_new_tokens):
            table.append(self.pool.allocate(seq.seq_id, len(table)))
        return True

    def commit(self, seq: TokenSequence, num_new_tokens: int) -> None:
        """The tokens' keys and values are written: move the cursor, then make full blocks findable."""
        start = seq.num_computed_tokens
        seq.num_computed_tokens += num_new_tokens
        seq.num_ever_computed = max(seq.num_ever_computed, seq.num_computed_tokens)
        slots = slots_of(self.block_tables[seq.seq_id], start, seq.num_computed_tokens, self.block_size)
        self.trace.append(SlotsWritten(self.trace.step, seq.seq_id, start, tuple(slots)))
        if self.enable_prefix_caching:
            self._publish_full_blocks(seq)

    def slot(self, seq_id: str, position: int) -> int:
        """Where the token at `position` lives: `block_table[position // B] * B + position % B`."""
        return slots_of(self.block_tables[seq_id], position, position + 1, self.block_size)[0]

    def _writes_shared_block(self, seq: TokenSequence, table: list[int]) -> bool:
        """Whether the next token lands inside a started block that other tables name too."""
        if seq.num_computed_tokens % self.block_size == 0 or not table:
            return False
        return self.pool.blocks[table[-1]].ref_cnt > 1

    def _copy_on_write(self, seq: TokenSequence, table: list[int]) -> None:
        source, target = self.pool.blocks[table[-1]], self.pool.take_free_block()
        if self.store:
            self.store.copy_block(source.block_id, target.block_id)
        self.pool.drop_holder(source)
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

    def find_prefix(self, seq: TokenSequence) -> PrefixHit:
        """Cached blocks that hold the sequence's first tokens; one token is left to compute, for its logits."""
        if not self.enable_prefix_caching:
            return []
        hit: PrefixHit = []
        parent: PrefixNode | None = None
        for index in range((seq.num_tokens - 1) // self.block_size):
            found = self.pool.find(parent, self._block_tokens(seq, index))
            if found is None:
                break
            hit.append(found)
            parent = found[1]
        return hit

    def num_blocks_to_start(self, seq: TokenSequence, hit: PrefixHit) -> int:
        """Free blocks a start with this hit takes for all known tokens; hits that lie in the free queue count."""
        revived = sum(self.pool.blocks[block_id].ref_cnt == 0 for block_id, _ in hit)
        return self.num_blocks_for(seq.num_tokens) - len(hit) + revived

    def take_prefix(self, seq: TokenSequence, hit: PrefixHit) -> int:
        """Start the sequence's table with the hit. Returns the tokens that need no computing."""
        table = self.block_tables.setdefault(seq.seq_id, [])
        for block_id, node in hit:
            self.pool.share(block_id, seq.seq_id, len(table), "prefix_cache")
            table.append(block_id)
            self._nodes.setdefault(seq.seq_id, []).append(node)
        seq.num_computed_tokens = len(hit) * self.block_size
        return seq.num_computed_tokens

    def _publish_full_blocks(self, seq: TokenSequence) -> None:
        table, nodes = self.block_tables[seq.seq_id], self._nodes.setdefault(seq.seq_id, [])
        for index in range(len(nodes), seq.num_computed_tokens // self.block_size):
            parent = nodes[-1] if nodes else None
            tokens = self._block_tokens(seq, index)
            block_hash = self.pool.hash_content(parent.block_hash if parent else None, tokens)
            nodes.append(PrefixNode(parent, tokens, block_hash))
            self.pool.publish(table[index], nodes[index], seq.seq_id, index)

    def _block_tokens(self, seq: TokenSequence, logical_index: int) -> tuple[int, ...]:
        start = logical_index * self.block_size
        return tuple(seq.token_ids[start : start + self.block_size])

    # -- sharing by fork (the paper) --

    def fork(self, parent: TokenSequence, child: TokenSequence) -> None:
        """The child names every block of the parent, a half-filled last one too. Nothing is copied yet."""
        self._share_table(parent, child, len(self.block_tables.get(parent.seq_id, [])), "fork")

    def share_full_blocks(self, sibling: TokenSequence, seq: TokenSequence, num_tokens: int) -> int:
        """Start the table with the sibling's full blocks of their first `num_tokens` common tokens."""
        num_blocks = num_tokens // self.block_size
        self._share_table(sibling, seq, num_blocks, "sibling")
        seq.num_computed_tokens = num_blocks * self.block_size
        return seq.num_computed_tokens

    def _share_table(self, source: TokenSequence, seq: TokenSequence, num_blocks: int, cause: ShareCause) -> None:
        for index, block_id in enumerate(self.block_tables.get(source.seq_id, [])[:num_blocks]):
            self.pool.share(block_id, seq.seq_id, index, cause)
            self.block_tables.setdefault(seq.seq_id, []).append(block_id)
        self._nodes[seq.seq_id] = self._nodes.get(source.seq_id, [])[:num_blocks]

    # -- giving back --

    def free(self, seq: TokenSequence) -> None:
        """Give back every block, tail first so that prefixes are kept longest; swapped blocks too."""
        self._free_device_blocks(seq)
        self.swap_space.leave(seq.seq_id)

    def release_unwritten(self, seq: TokenSequence) -> None:
        """Give back blocks taken for tokens that did not run after all, because the request had to make room."""
        table = self.block_tables.get(seq.seq_id, [])
        while len(table) > self.num_blocks_for(seq.num_computed_tokens):
            self.pool.release(table.pop(), seq.seq_id, len(table))

    # -- swap (paper section 4.5) --

    def can_swap_out(self, sequences: Iterable[TokenSequence]) -> bool:
        blocks = {b for seq in sequences for b in self.block_tables.get(seq.seq_id, [])}
        return len(blocks) <= self.swap_space.num_free_blocks

    def swap_out(self, sequences: Sequence[TokenSequence]) -> None:
        """Copy all blocks of these sequences to CPU blocks, shared ones once, and free them here."""
        home: dict[int, int] = {}
        for seq in sequences:
            for index, block_id in enumerate(self.block_tables.get(seq.seq_id, [])):
                if block_id not in home:
                    home[block_id] = self.swap_space.take()
                self.swap_space.enter(seq.seq_id, home[block_id])
                self.trace.append(BlockSwappedOut(self.trace.step, block_id, home[block_id], seq.seq_id, index))
        if self.store and home:
            self.store.swap_out(list(home.items()))
        for seq in sequences:
            self._free_device_blocks(seq)

    def num_blocks_to_swap_in(self, sequences: Sequence[TokenSequence]) -> int:
        """Free blocks a return takes, with room for all tokens the sequences know: they need not leave at once.

        Of the holders of a half-filled block all but the last will copy it.
        """
        returning: set[int] = set()
        shared_tails: list[int] = []
        growth = 0
        for seq in sequences:
            table = self.swap_space.tables.get(seq.seq_id, [])
            returning.update(table)
            if table:
                growth += self.num_blocks_for(seq.num_tokens) - len(table)
            if self._started_and_shared(seq, table):
                shared_tails.append(table[-1])
        return len(returning) + growth + len(shared_tails) - len(set(shared_tails))

    def swap_in(self, sequences: Sequence[TokenSequence]) -> None:
        """Bring the blocks back into free blocks of the pool; sequences share again what they shared before."""
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
            self.swap_space.leave(seq.seq_id)
        if self.store and home:
            self.store.swap_in(list(home.items()))

    def _started_and_shared(self, seq: TokenSequence, cpu_table: list[int]) -> bool:
        if seq.num_computed_tokens % self.block_size == 0 or not cpu_table:
            return False
        return self.swap_space.ref_cnts[cpu_table[-1]] > 1

    def _free_device_blocks(self, seq: TokenSequence) -> None:
        table = self.block_tables.pop(seq.seq_id, [])
        for index in reversed(range(len(table))):
            self.pool.release(table[index], seq.seq_id, index)
        self._nodes.pop(seq.seq_id, None)

    # -- moving house --

    def shuffle(self, permutation: Sequence[int]) -> None:
        """Move every block to a new place and follow with every table: old block `i` becomes `permutation[i]`."""
        if self.store:
            self.store.permute(permutation)
        self.pool.permute(permutation)
        for table in self.block_tables.values():
            table[:] = [permutation[block_id] for block_id in table]
