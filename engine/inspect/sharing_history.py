"""The history of block sharing: forks, copies and frees of a trace, with `ref_cnt` before and after each.

    for entry in sharing_history(trace): print(entry.step, entry.ref_cnt_before, entry.ref_cnt_after, entry.sentence)

A fork increments the count of each of its parent's blocks. The first sequence that writes into a shared block copies
it, which decrements the count. A beam that is pruned frees all its blocks: those it shared stay with its siblings, its
own go to the free queue, and to the sequence that allocates them next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.trace.events import (
    BlockAllocated,
    BlockCopied,
    BlockFreed,
    BlockShared,
    Event,
    SequenceFinished,
    SequenceForked,
)
from engine.trace.state import CacheState
from engine.trace.trace import Trace

Kind = Literal["fork", "share", "copy", "prune", "free", "reuse"]


@dataclass(frozen=True, slots=True)
class SharingEntry:
    """One change of sharing. The counts are those of `block_id`; None where the entry is about no block.

    copy: `block_id` is the source. reuse: `seq_id` is allocated a block that `previous_owner` freed last.
    """

    step: int
    kind: Kind
    seq_id: str
    sentence: str
    block_id: int | None = None
    ref_cnt_before: int | None = None
    ref_cnt_after: int | None = None
    previous_owner: str | None = None


@dataclass(frozen=True, slots=True)
class SharingTotals:
    """Counts over some entries. `num_to_one_reference`: copies that left the shared block with one reference."""

    num_forks: int
    num_copies: int
    num_to_one_reference: int
    num_pruned: int
    num_reused: int


def sharing_history(trace: Trace) -> tuple[SharingEntry, ...]:
    """Every fork, every block that is shared, copied, freed or reused, and every beam that is pruned, in order."""
    state, previous_owners, entries = CacheState(), dict[int, str](), list[SharingEntry]()
    for event in trace:
        blocks = _blocks_of(event)
        before = [_ref_cnt(state, block_id) for block_id in blocks]
        state.apply(event)
        counts = [(b, _ref_cnt(state, block_id)) for b, block_id in zip(before, blocks, strict=True)]
        entries += _entries(event, counts, previous_owners)
    return tuple(entries)


def totals_of(entries: tuple[SharingEntry, ...]) -> SharingTotals:
    """The entries counted by kind."""
    kinds = [entry.kind for entry in entries]
    return SharingTotals(
        num_forks=kinds.count("fork"),
        num_copies=kinds.count("copy"),
        num_to_one_reference=sum(entry.kind == "copy" and entry.ref_cnt_after == 1 for entry in entries),
        num_pruned=kinds.count("prune"),
        num_reused=kinds.count("reuse"),
    )


def _entries(event: Event, counts: list[tuple[int, int]], previous_owners: dict[int, str]) -> Iterator[SharingEntry]:
    """`counts`: references before and after, of each of `_blocks_of(event)`."""
    sentence = event.describe()
    match event:
        case SequenceForked(step=step, seq_id=name):
            yield SharingEntry(step, "fork", name, sentence)
        case BlockShared(step=step, seq_id=name, block_id=block):
            yield SharingEntry(step, "share", name, sentence, block, *counts[0])
        case BlockCopied(step=step, seq_id=name, src_block_id=source, dst_block_id=block):
            yield SharingEntry(step, "copy", name, sentence, source, *counts[0])
            if block in previous_owners:
                yield SharingEntry(step, "reuse", name, sentence, block, *counts[1], previous_owners.pop(block))
        case SequenceFinished(step=step, seq_id=name, reason="beam_pruned"):
            yield SharingEntry(step, "prune", name, sentence)
        case BlockFreed(step=step, seq_id=name, block_id=block):
            previous_owners[block] = name
            yield SharingEntry(step, "free", name, sentence, block, *counts[0])
        case BlockAllocated(step=step, seq_id=name, block_id=block) if block in previous_owners:
            yield SharingEntry(step, "reuse", name, sentence, block, *counts[0], previous_owners.pop(block))


def _blocks_of(event: Event) -> tuple[int, ...]:
    match event:
        case BlockShared(block_id=block) | BlockFreed(block_id=block) | BlockAllocated(block_id=block):
            return (block,)
        case BlockCopied(src_block_id=source, dst_block_id=target):
            return source, target
    return ()


def _ref_cnt(state: CacheState, block_id: int) -> int:
    return state.blocks[block_id].ref_cnt
