"""The block pool: which physical blocks are free, how many tables name each, and which can be found by content.

Usable on its own, without a model and without torch.

    free_block_queue, head to tail      6  1  8  |  3  0
                                        ^ next    ^ cached blocks: the longest kept are at the tail

Order of the free queue (pinned by tests, because everything a learner sees follows from it):
- at the start: ascending ids, or the `free_order` asked for, the rest ascending behind it;
- a block is taken from the head;
- a freed block that nobody can find by content goes to the head (its content is worthless: reuse it first);
- a freed block that is findable goes to the tail, so the least recently freed content is given up first (LRU).
A sequence frees its blocks tail first, so of one sequence's cached blocks the first, most shareable one is given
up last.

The prefix cache (vLLM V1 semantics): full blocks only; content is given up when a block is *taken* for other
tokens, never when it is freed. Two blocks may hold the same content; both stay findable.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.events import (
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
from engine.prefix import PrefixNode, content_hash
from engine.trace import Trace


class OutOfBlocksError(RuntimeError):
    """The free queue has fewer blocks than were asked for."""


@dataclass(slots=True)
class Block:
    """One physical block. `ref_cnt`: how many tables name it. `node`: its content, when findable."""

    block_id: int
    ref_cnt: int = 0
    node: PrefixNode | None = None


class BlockPool:
    """Hands out blocks, counts holders, remembers content. Every change is written to `trace`."""

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        trace: Trace,
        *,
        num_cpu_blocks: int = 0,
        free_order: Sequence[int] = (),
        hash_content: Callable[[int | None, tuple[int, ...]], int] = content_hash,
    ) -> None:
        """`free_order`: ids to hand out first, in that order. Raises ValueError when it names a block twice."""
        if len(set(free_order)) != len(free_order) or not set(free_order) <= set(range(num_blocks)):
            raise ValueError(f"free_order must name blocks 0 to {num_blocks - 1}, each at most once.")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.trace = trace
        self.hash_content = hash_content
        self.blocks = [Block(i) for i in range(num_blocks)]
        rest = (i for i in range(num_blocks) if i not in set(free_order))
        self.free_block_queue: OrderedDict[int, None] = OrderedDict.fromkeys([*free_order, *rest])
        self._findable: dict[int, OrderedDict[int, PrefixNode]] = {}
        trace.append(PoolCreated(trace.step, num_blocks, block_size, num_cpu_blocks, tuple(self.free_block_queue)))

    @property
    def num_free_blocks(self) -> int:
        return len(self.free_block_queue)

    def allocate(self, seq_id: str, logical_index: int) -> int:
        """Take the block at the head of the free queue for one table. Raises OutOfBlocksError when none is free."""
        block = self.take_free_block()
        self.trace.append(BlockAllocated(self.trace.step, block.block_id, seq_id, logical_index))
        return block.block_id

    def take_free_block(self) -> Block:
        """The head of the free queue, its old content given up, with `ref_cnt` 1. The caller writes the event."""
        if not self.free_block_queue:
            raise OutOfBlocksError(f"All {self.num_blocks} blocks are in use.")
        block = self.blocks[self.free_block_queue.popitem(last=False)[0]]
        self.unpublish(block)
        block.ref_cnt = 1
        return block

    def share(self, block_id: int, seq_id: str, logical_index: int, cause: ShareCause) -> None:
        """One more table names the block; a free one leaves the queue, content kept."""
        block = self.blocks[block_id]
        if block.ref_cnt == 0:
            del self.free_block_queue[block_id]
        block.ref_cnt += 1
        self.trace.append(BlockShared(self.trace.step, block_id, seq_id, logical_index, block.ref_cnt, cause))

    def release(self, block_id: int, seq_id: str, logical_index: int) -> None:
        """One table lets go. At zero holders the block joins the free queue: findable to the tail, else to the head."""
        block = self.blocks[block_id]
        self.drop_holder(block)
        cached = block.node is not None
        self.trace.append(BlockFreed(self.trace.step, block_id, seq_id, logical_index, block.ref_cnt, cached))

    def drop_holder(self, block: Block) -> None:
        """Count one holder less, and queue the block when it was the last. The caller writes the event."""
        if block.ref_cnt < 1:
            raise ValueError(f"Block {block.block_id} is free already.")
        block.ref_cnt -= 1
        if block.ref_cnt == 0:
            self.free_block_queue[block.block_id] = None
            self.free_block_queue.move_to_end(block.block_id, last=block.node is not None)

    # -- the prefix cache --

    def publish(self, block_id: int, node: PrefixNode, seq_id: str, logical_index: int) -> None:
        """Make a full, computed block findable by its content."""
        block = self.blocks[block_id]
        if block.node is not None:
            return
        block.node = node
        self._findable.setdefault(node.block_hash, OrderedDict())[block_id] = node
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

    def find(self, parent: PrefixNode | None, token_ids: tuple[int, ...]) -> tuple[int, PrefixNode] | None:
        """The first block whose content is exactly these tokens behind exactly that parent.

        The hash only narrows the search; tokens are compared all the way up the chain, so a hash function
        that maps everything to one number still gives right answers.
        """
        wanted = self.hash_content(parent.block_hash if parent else None, token_ids)
        for block_id, node in self._findable.get(wanted, {}).items():
            if node.token_ids == token_ids and node.has_parent(parent):
                return block_id, node
        return None

    def unpublish(self, block: Block) -> None:
        """Give up a block's content, if it has any."""
        if block.node is None:
            return
        holders = self._findable[block.node.block_hash]
        del holders[block.block_id]
        if not holders:
            del self._findable[block.node.block_hash]
        self.trace.append(BlockRemoved(self.trace.step, block.block_id, block.node.block_hash))
        block.node = None

    def clear_prefix_cache(self) -> None:
        """Nothing is findable any more. Blocks keep their holders and their places in the queue."""
        for block in self.blocks:
            block.node = None
        self._findable.clear()
        self.trace.append(AllBlocksCleared(self.trace.step))

    # -- moving house --

    def permute(self, permutation: Sequence[int]) -> None:
        """Old block `i` becomes block `permutation[i]`, with holders, content and queue place. Tables: the caller's."""
        renamed = [self.blocks[0]] * self.num_blocks
        for block in self.blocks:
            block.block_id = permutation[block.block_id]
            renamed[block.block_id] = block
        self.blocks = renamed
        self.free_block_queue = OrderedDict.fromkeys(permutation[i] for i in self.free_block_queue)
        for block_hash, holders in self._findable.items():
            self._findable[block_hash] = OrderedDict((permutation[i], node) for i, node in holders.items())
        self.trace.append(BlocksShuffled(self.trace.step, tuple(permutation)))
