"""Stored blocks as trees of prefixes: what begins alike stands once, and splits where it differs.

    forest = forest_of(view)
    for run in forest.runs: ...       trees in depth-first order, the largest first

A run is a stretch of blocks in which nothing branches. Parents come from another machine: those that are not stored,
and rings of blocks that name each other, are told apart from real beginnings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from engine.cache_events import BlockHash
from engine.cache_view import RankView, StoredBlock

MAX_RUNS, MAX_SHARED = 150, 12


@dataclass(frozen=True, slots=True)
class Run:
    """`blocks` follow each other. `first_position`: of its first token, from where the tree begins.

    depth: runs above it. num_continuations: different ends below, 1 where nothing branches. num_blocks_below: in all
    runs under it. has_unknown_start: its first block's parent is not stored, so what comes before is not known.
    """

    blocks: tuple[StoredBlock, ...]
    depth: int
    first_position: int
    num_continuations: int
    num_blocks_below: int
    has_unknown_start: bool

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(token for block in self.blocks for token in block.token_ids)

    @property
    def num_tokens(self) -> int:
        return sum(block.block_size for block in self.blocks)

    @property
    def end(self) -> int:
        """Tokens from where the tree begins to the end of this run."""
        return self.first_position + self.num_tokens

    @property
    def num_copies(self) -> int:
        return sum(block.num_copies for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Forest:
    """`runs`: at most `MAX_RUNS`; num_runs_hidden more are not in it. shared: the beginnings with most continuations.

    num_roots: trees that start where a text starts. num_orphans: trees whose start is not stored.
    num_in_rings: blocks that name each other as parents.
    """

    runs: tuple[Run, ...]
    shared: tuple[Run, ...]
    num_runs_hidden: int
    num_roots: int
    num_orphans: int
    num_in_rings: int


def forest_of(view: RankView, max_runs: int = MAX_RUNS) -> Forest:
    """The trees of one engine's stored blocks."""
    tree = _Tree(view)
    runs = list(tree.runs())
    shared = sorted((run for run in runs if run.num_continuations > 1), key=_sharing, reverse=True)
    return Forest(
        runs=tuple(runs[:max_runs]),
        shared=tuple(shared[:MAX_SHARED]),
        num_runs_hidden=max(len(runs) - max_runs, 0),
        num_roots=sum(root.parent_block_hash is None for root in tree.roots),
        num_orphans=sum(root.parent_block_hash is not None for root in tree.roots),
        num_in_rings=len(view.blocks) - len(tree.size),
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
        self.roots.sort(key=self._weight, reverse=True)

    def children(self, block: StoredBlock) -> list[StoredBlock]:
        return self._children.get(block.block_hash, [])

    def runs(self) -> Iterator[Run]:
        stack = [(root, 0, 0) for root in reversed(self.roots)]
        while stack:
            block, depth, position = stack.pop()
            run = self._run(block, depth, position)
            yield run
            ahead = sorted(self.children(run.blocks[-1]), key=self._weight)
            stack += [(child, depth + 1, position + run.num_tokens) for child in ahead]

    def _run(self, block: StoredBlock, depth: int, position: int) -> Run:
        blocks = [block]
        while len(ahead := self.children(blocks[-1])) == 1:
            blocks.append(ahead[0])
        size, ends = self.size[blocks[-1].block_hash], self.ends[blocks[-1].block_hash]
        is_unknown = depth == 0 and block.parent_block_hash is not None
        return Run(tuple(blocks), depth, position, ends, size - 1, is_unknown)

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

    def _weight(self, block: StoredBlock) -> int:
        return self.size[block.block_hash]


def _sharing(run: Run) -> tuple[int, int]:
    return run.num_continuations, run.end


def _begins(token_ids: tuple[int, ...], start: int, part: tuple[int, ...]) -> bool:
    return token_ids[start : start + len(part)] == part
