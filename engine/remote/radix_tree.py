"""Stored blocks as trees of prefixes: a prefix that many share stands once, and splits where they differ.

    tree = radix_tree_of(view)
    for node in tree.nodes: ...       depth first, the largest subtree first

A node holds a stretch of blocks in which nothing branches (SGLang: RadixAttention). The tree with the prefix that is
shared most comes first, and the way down to that prefix is marked: a reader wants to see it open. Parents come from
another machine: those that are not stored, and cycles of blocks that name each other, are told apart from real roots.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from engine.trace.cache_events import BlockHash
from engine.trace.cache_view import RankView, StoredBlock

MAX_NODES, MAX_SHARED = 150, 12


@dataclass(frozen=True, slots=True)
class RadixNode:
    """`blocks` follow each other. `first_position`: of its first token, from where the tree begins.

    depth: nodes above it. num_continuations: different ends below, 1 where nothing branches.
    has_unknown_start: its first block's parent is not stored, so what comes before is not known.
    leads_to_shared: it is the prefix that saves most tokens by being stored once, or one of the nodes above that.
    """

    blocks: tuple[StoredBlock, ...]
    depth: int
    first_position: int
    num_continuations: int
    has_unknown_start: bool
    leads_to_shared: bool

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens of all blocks of this node."""
        return tuple(token for block in self.blocks for token in block.token_ids)

    @property
    def num_tokens(self) -> int:
        """Tokens in all blocks of this node."""
        return sum(block.block_size for block in self.blocks)

    @property
    def end(self) -> int:
        """Tokens from where the tree begins to the end of this node."""
        return self.first_position + self.num_tokens

    @property
    def num_copies(self) -> int:
        """Copies stored of all blocks of this node."""
        return sum(block.num_copies for block in self.blocks)


@dataclass(frozen=True, slots=True)
class RadixTree:
    """`nodes`: at most `MAX_NODES`, num_nodes_hidden more left out. shared: the prefixes with most continuations.

    num_roots: trees that start where a text starts. num_orphans: trees whose start is not stored.
    num_in_cycles: blocks that name each other as parents.
    """

    nodes: tuple[RadixNode, ...]
    shared: tuple[RadixNode, ...]
    num_nodes_hidden: int
    num_roots: int
    num_orphans: int
    num_in_cycles: int


def radix_tree_of(view: RankView, max_nodes: int = MAX_NODES) -> RadixTree:
    """The trees of one engine's stored blocks."""
    tree = _Tree(view)
    nodes = list(tree.nodes())
    shared = sorted((node for node in nodes if node.num_continuations > 1), key=_sharing, reverse=True)
    return RadixTree(
        nodes=tuple(nodes[:max_nodes]),
        shared=tuple(shared[:MAX_SHARED]),
        num_nodes_hidden=max(len(nodes) - max_nodes, 0),
        num_roots=sum(root.parent_block_hash is None for root in tree.roots),
        num_orphans=sum(root.parent_block_hash is not None for root in tree.roots),
        num_in_cycles=len(view.blocks) - len(tree.size),
    )


def chain_of(view: RankView, token_ids: tuple[int, ...]) -> tuple[StoredBlock, ...]:
    """The stored blocks, from a beginning on, that hold exactly these tokens."""
    by_parent: defaultdict[BlockHash | None, list[StoredBlock]] = defaultdict(list)
    for block in view.blocks.values():
        by_parent[block.parent_block_hash].append(block)
    chain: list[StoredBlock] = []
    start, parent = 0, None
    while start < len(token_ids):
        found = next((b for b in by_parent[parent] if b.token_ids and _begins(token_ids, start, b.token_ids)), None)
        if found is None:
            break
        chain.append(found)
        start, parent = start + len(found.token_ids), found.block_hash
    return tuple(chain)


class _Tree:
    """Children and sizes of every block that can be reached from a root."""

    def __init__(self, view: RankView) -> None:
        self._children: dict[BlockHash, list[StoredBlock]] = {}
        self.roots: list[StoredBlock] = []
        for block in view.blocks.values():
            parent = block.parent_block_hash
            if parent is None or parent not in view.blocks:
                self.roots.append(block)
            else:
                self._children.setdefault(parent, []).append(block)
        self.size: dict[BlockHash, int] = {}
        """Blocks in each block's tree, itself counted."""
        self.ends: dict[BlockHash, int] = {}
        """Different ends of it."""
        self._measure()
        self._to_shared = self._way_to_shared()
        """The most shared prefix's last block and those before it, by hash."""
        self.roots.sort(key=self._weight, reverse=True)

    def children(self, block: StoredBlock) -> list[StoredBlock]:
        return self._children.get(block.block_hash, [])

    def nodes(self) -> Iterator[RadixNode]:
        stack = [(root, 0, 0) for root in reversed(self.roots)]
        while stack:
            block, depth, position = stack.pop()
            node = self._node(block, depth, position)
            yield node
            ahead = sorted(self.children(node.blocks[-1]), key=self._weight)
            stack += [(child, depth + 1, position + node.num_tokens) for child in ahead]

    def _node(self, block: StoredBlock, depth: int, position: int) -> RadixNode:
        blocks = [block]
        while len(ahead := self.children(blocks[-1])) == 1:
            blocks.append(ahead[0])
        is_unknown = depth == 0 and block.parent_block_hash is not None
        last = blocks[-1].block_hash
        return RadixNode(tuple(blocks), depth, position, self.ends[last], is_unknown, last in self._to_shared)

    def _measure(self) -> None:
        order = list(self.roots)
        for block in order:  # grows while it is walked: parents before children
            order += self._children.get(block.block_hash, ())
        size = dict.fromkeys((block.block_hash for block in order), 1)
        ends = dict.fromkeys(size, 0)
        for block in reversed(order):
            own, parent = block.block_hash, block.parent_block_hash
            ends[own] = ends[own] or 1
            if parent in size:
                size[parent] += size[own]
                ends[parent] += ends[own]
        self.size, self.ends = size, ends

    def _way_to_shared(self) -> set[BlockHash]:
        """Down from each beginning of a text: a prefix of t tokens with n ends would cost (n - 1) * t more unshared."""
        order = [(root, root.block_size) for root in self.roots if root.parent_block_hash is None]
        above: dict[BlockHash, BlockHash | None] = {}
        best: BlockHash | None = None
        most = 0
        for block, end in order:  # grows while it is walked
            above[block.block_hash] = block.parent_block_hash
            saved = (self.ends[block.block_hash] - 1) * end
            if saved > most:
                best, most = block.block_hash, saved
            if self.ends[block.block_hash] > 1:
                order += [(child, end + child.block_size) for child in self.children(block)]
        way: set[BlockHash] = set()
        while best is not None:
            way.add(best)
            best = above[best]
        return way

    def _weight(self, block: StoredBlock) -> tuple[bool, int]:
        return block.block_hash in self._to_shared, self.size[block.block_hash]


def _sharing(node: RadixNode) -> tuple[int, int]:
    return node.num_continuations, node.end


def _begins(token_ids: tuple[int, ...], start: int, part: tuple[int, ...]) -> bool:
    return token_ids[start : start + len(part)] == part
