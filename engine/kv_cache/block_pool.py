"""The block pool: free blocks, reference counts, and the prefix cache of full blocks by their content.

Usable on its own, without a model and without torch.

    free_block_queue, head to tail      6  1  8  |  3  0
                                        ^ next    ^ cached blocks: the longest kept are at the tail

Order of the free queue (pinned by tests, because everything a learner sees follows from it):
- at the start: ascending ids, or the `free_order` asked for, the rest ascending behind it;
- a block is taken from the head;
- a freed block that is not cached goes to the head (nothing can hit it: reuse it first);
- a freed block that is cached goes to the tail, so the least recently freed content is evicted first (LRU).
A sequence frees its blocks tail first, so of one sequence's cached blocks the first one, which most other prompts
can share, is evicted last.

The prefix cache (vLLM V1 semantics): full blocks only; content is evicted when a block is *allocated* for other
tokens, never when it is freed. Two blocks may hold the same content; both stay cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.i18n import _
from engine.kv_cache.prefix_cache import PrefixNode, hash_block_tokens
from engine.trace.events import (
    AllBlocksCleared,
    BlockAllocated,
    BlockFreed,
    BlockRemoved,
    BlockShared,
    BlocksShuffled,
    BlockStored,
    PoolCreated,
    ShareCause,
)
from engine.trace.trace import Trace


class OutOfBlocksError(RuntimeError):
    """The free queue has fewer blocks than were asked for."""


@dataclass(slots=True)
class Block:
    """One physical block. `ref_cnt`: block tables that reference it. `node`: its content while it is cached."""

    block_id: int
    ref_cnt: int = 0
    node: PrefixNode | None = None


class BlockPool:
    """Allocates and frees blocks, counts references, caches full blocks. Every change is written to `trace`."""

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        trace: Trace,
        *,
        num_cpu_blocks: int = 0,
        free_order: Sequence[int] = (),
        hash_block_tokens: Callable[[int | None, tuple[int, ...]], int] = hash_block_tokens,
    ) -> None:
        """`free_order`: ids to hand out first, in that order. Raises ValueError when it names a block twice."""
        if len(set(free_order)) != len(free_order) or not set(free_order) <= set(range(num_blocks)):
            raise ValueError(
                _("free_order must name blocks 0 to {num_blocks}, each at most once.").format(num_blocks=num_blocks - 1)
            )
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.trace = trace
        self.hash_block_tokens = hash_block_tokens
        self.blocks = [Block(i) for i in range(num_blocks)]
        rest = (i for i in range(num_blocks) if i not in set(free_order))
        self.free_block_queue: OrderedDict[int, None] = OrderedDict.fromkeys([*free_order, *rest])
        self._cached_blocks: dict[int, OrderedDict[int, PrefixNode]] = {}
        trace.append(PoolCreated(trace.step, num_blocks, block_size, num_cpu_blocks, tuple(self.free_block_queue)))

    @property
    def num_free_blocks(self) -> int:
        """Blocks in the free queue, cached ones included."""
        return len(self.free_block_queue)

    def allocate(self, seq_id: str, logical_index: int) -> int:
        """Give the block at the head of the free queue to one table. Raises OutOfBlocksError when none is free."""
        block = self.take_free_block()
        self.trace.append(BlockAllocated(self.trace.step, block.block_id, seq_id, logical_index))
        return block.block_id

    def take_free_block(self) -> Block:
        """Pop the head of the free queue and evict its old content; `ref_cnt` is 1. The caller writes the event."""
        if not self.free_block_queue:
            raise OutOfBlocksError(_("All {num_blocks} blocks are in use.").format(num_blocks=self.num_blocks))
        block = self.blocks[self.free_block_queue.popitem(last=False)[0]]
        self.evict(block)
        block.ref_cnt = 1
        return block

    def share(self, block_id: int, seq_id: str, logical_index: int, cause: ShareCause) -> None:
        """Add the reference of one more table. A free, cached block leaves the queue and keeps its content."""
        block = self.blocks[block_id]
        if block.ref_cnt == 0:
            del self.free_block_queue[block_id]
        block.ref_cnt += 1
        self.trace.append(BlockShared(self.trace.step, block_id, seq_id, logical_index, block.ref_cnt, cause))

    def release(self, block_id: int, seq_id: str, logical_index: int) -> None:
        """Remove the reference of one table. At `ref_cnt` 0 it joins the free queue: cached to the tail, else head."""
        block = self.blocks[block_id]
        self.drop_reference(block)
        cached = block.node is not None
        self.trace.append(BlockFreed(self.trace.step, block_id, seq_id, logical_index, block.ref_cnt, cached))

    def drop_reference(self, block: Block) -> None:
        """Decrement `ref_cnt`, and queue the block when it reaches 0. The caller writes the event."""
        if block.ref_cnt < 1:
            raise ValueError(_("Block {block_id} is free already.").format(block_id=block.block_id))
        block.ref_cnt -= 1
        if block.ref_cnt == 0:
            self.free_block_queue[block.block_id] = None
            self.free_block_queue.move_to_end(block.block_id, last=block.node is not None)

    # -- the prefix cache --

    def cache_block(self, block_id: int, node: PrefixNode, seq_id: str, logical_index: int) -> None:
        """Add a full, computed block to the prefix cache. A block that is cached already stays as it is."""
        block = self.blocks[block_id]
        if block.node is not None:
            return
        block.node = node
        self._cached_blocks.setdefault(node.block_hash, OrderedDict())[block_id] = node
        parent_hash = node.parent.block_hash if node.parent else None
        self.trace.append(
            BlockStored(
                self.trace.step,
                block_id,
                node.block_hash,
                parent_hash,
                node.token_ids,
                self.block_size,
                seq_id,
                logical_index,
            )
        )

    def get_cached_block(self, parent: PrefixNode | None, token_ids: tuple[int, ...]) -> tuple[int, PrefixNode] | None:
        """The first cached block that holds exactly these tokens behind exactly that parent, or None.

        The hash only narrows the search; tokens are compared all the way up the chain, so a hash function
        that maps everything to one number still gives right answers.
        """
        wanted = self.hash_block_tokens(parent.block_hash if parent else None, token_ids)
        for block_id, node in self._cached_blocks.get(wanted, {}).items():
            if node.token_ids == token_ids and node.has_parent(parent):
                return block_id, node
        return None

    def evict(self, block: Block) -> None:
        """Remove a block from the prefix cache, if it is in it."""
        if block.node is None:
            return
        same_hash = self._cached_blocks[block.node.block_hash]
        del same_hash[block.block_id]
        if not same_hash:
            del self._cached_blocks[block.node.block_hash]
        self.trace.append(BlockRemoved(self.trace.step, block.block_id, block.node.block_hash))
        block.node = None

    def clear_prefix_cache(self) -> None:
        """Evict everything. Blocks keep their references and their places in the free queue."""
        for block in self.blocks:
            block.node = None
        self._cached_blocks.clear()
        self.trace.append(AllBlocksCleared(self.trace.step))

    # -- permutation of physical blocks (the shuffle experiment) --

    def permute(self, permutation: Sequence[int]) -> None:
        """Block `i` becomes block `permutation[i]`, references and content included. The caller maps the tables."""
        renamed = [self.blocks[0]] * self.num_blocks
        for block in self.blocks:
            block.block_id = permutation[block.block_id]
            renamed[block.block_id] = block
        self.blocks = renamed
        self.free_block_queue = OrderedDict.fromkeys(permutation[i] for i in self.free_block_queue)
        for block_hash, same_hash in self._cached_blocks.items():
            self._cached_blocks[block_hash] = OrderedDict((permutation[i], node) for i, node in same_hash.items())
        self.trace.append(BlocksShuffled(self.trace.step, tuple(permutation)))
