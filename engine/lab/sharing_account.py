"""Who shares which block, from when to when: the forks, copies and frees of a run, with the counts they leave.

    for entry in sharing_account(trace): print(entry.step, entry.ref_cnt_before, entry.ref_cnt_after, entry.sentence)

A fork makes the count of each of its parent's blocks one higher. The first who must write into a shared block copies
it, and the count falls. A beam that dies lets go of all its blocks: those it shared live on with its siblings, its
own go to whoever takes them next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.events import (
    BlockAllocated,
    BlockCopied,
    BlockFreed,
    BlockShared,
    Event,
    SequenceFinished,
    SequenceForked,
)
from engine.state import CacheState
from engine.trace import Trace

Kind = Literal["fork", "share", "copy", "death", "free", "inherit"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened to sharing. The counts are those of `block_id`; None where no block is concerned.

    copy: `block_id` is the source. inherit: `seq_id` takes a block that `given_back_by` held last.
    """

    step: int
    kind: Kind
    seq_id: str
    sentence: str
    block_id: int | None = None
    ref_cnt_before: int | None = None
    ref_cnt_after: int | None = None
    given_back_by: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Over some entries. `num_falls_to_one`: copies after which the shared block had one holder left."""

    num_forks: int
    num_copies: int
    num_falls_to_one: int
    num_deaths: int
    num_inherited: int


def sharing_account(trace: Trace) -> tuple[Entry, ...]:
    """Every fork, every block that is shared, copied, let go of or inherited, and every beam that dies, in order."""
    state, given_back, entries = CacheState(), dict[int, str](), list[Entry]()
    for event in trace:
        blocks = _blocks_of(event)
        before = [_ref_cnt(state, block_id) for block_id in blocks]
        state.apply(event)
        counts = [(b, _ref_cnt(state, block_id)) for b, block_id in zip(before, blocks, strict=True)]
        entries += _entries(event, counts, given_back)
    return tuple(entries)


def totals_of(entries: tuple[Entry, ...]) -> Totals:
    kinds = [entry.kind for entry in entries]
    return Totals(
        num_forks=kinds.count("fork"),
        num_copies=kinds.count("copy"),
        num_falls_to_one=sum(entry.kind == "copy" and entry.ref_cnt_after == 1 for entry in entries),
        num_deaths=kinds.count("death"),
        num_inherited=kinds.count("inherit"),
    )


def _entries(event: Event, counts: list[tuple[int, int]], given_back: dict[int, str]) -> Iterator[Entry]:
    """`counts`: holders before and after, of each of `_blocks_of(event)`."""
    sentence = event.describe()
    match event:
        case SequenceForked(step=step, seq_id=name):
            yield Entry(step, "fork", name, sentence)
        case BlockShared(step=step, seq_id=name, block_id=block):
            yield Entry(step, "share", name, sentence, block, *counts[0])
        case BlockCopied(step=step, seq_id=name, src_block_id=source, dst_block_id=block):
            yield Entry(step, "copy", name, sentence, source, *counts[0])
            if block in given_back:
                yield Entry(step, "inherit", name, sentence, block, *counts[1], given_back.pop(block))
        case SequenceFinished(step=step, seq_id=name, reason="beam_pruned"):
            yield Entry(step, "death", name, sentence)
        case BlockFreed(step=step, seq_id=name, block_id=block):
            given_back[block] = name
            yield Entry(step, "free", name, sentence, block, *counts[0])
        case BlockAllocated(step=step, seq_id=name, block_id=block) if block in given_back:
            yield Entry(step, "inherit", name, sentence, block, *counts[0], given_back.pop(block))


def _blocks_of(event: Event) -> tuple[int, ...]:
    match event:
        case BlockShared(block_id=block) | BlockFreed(block_id=block) | BlockAllocated(block_id=block):
            return (block,)
        case BlockCopied(src_block_id=source, dst_block_id=target):
            return source, target
    return ()


def _ref_cnt(state: CacheState, block_id: int) -> int:
    return state.blocks[block_id].ref_cnt
