"""Blocks, swap pool, contiguous memory and free queue: what changed since the last frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.state import BlockState, CacheState, Region, SlotContent
from views.frame_dictionaries import FrameDictionaries
from views.touched import Touched

NUM_NEXT_FREE = 8
"""How much of the free queue's head a frame shows."""


@dataclass
class _BlockShadow:
    owners: tuple[tuple[str, int], ...]
    cached: bool
    slots: list[SlotContent | None]


class MemoryEncoder:
    """Remembers what the reader of the frames already knows of memory."""

    def __init__(self, names: FrameDictionaries) -> None:
        self._names = names
        self.forget()

    def forget(self) -> None:
        """The reader starts from empty memory."""
        self._blocks: dict[int, _BlockShadow] = {}
        self._cpu_blocks: dict[int, _BlockShadow] = {}
        self._arena: list[SlotContent | None] = []
        self._lists: dict[str, list[Any]] = {"regions": [], "next_free": []}

    def encode(self, state: CacheState, touched: Touched) -> dict[str, Any]:
        """Fields blocks, cpu_blocks, arena, regions and next_free, each only when it changed."""
        fields = {
            "blocks": self._block_entries(_pick(state.blocks, touched.blocks, touched), self._blocks),
            "cpu_blocks": self._block_entries(_pick(state.cpu_blocks, touched.cpu_blocks, touched), self._cpu_blocks),
            "arena": self._arena_entries(state.arena, touched),
        }
        lists: dict[str, list[Any]] = {
            "regions": [self._region(r) for r in sorted(state.regions.values(), key=lambda r: r.start)],
            "next_free": list(islice(state.free_block_queue, NUM_NEXT_FREE)),
        }
        changed_lists = {key: value for key, value in lists.items() if value != self._lists[key]}
        self._lists = lists
        return {key: value for key, value in fields.items() if value} | changed_lists

    def _block_entries(self, blocks: Iterable[BlockState], known: dict[int, _BlockShadow]) -> list[dict[str, Any]]:
        entries = (self._block_entry(block, known) for block in blocks)
        return [entry for entry in entries if entry is not None]

    def _block_entry(self, block: BlockState, known: dict[int, _BlockShadow]) -> dict[str, Any] | None:
        before = known.get(block.block_id) or _BlockShadow((), False, [None] * len(block.slots))
        now = _BlockShadow(tuple(block.owners.items()), block.block_hash is not None, list(block.slots))
        if now == before:
            return None
        known[block.block_id] = now
        entry: dict[str, Any] = {"id": block.block_id}
        if now.owners != before.owners:
            entry["owners"] = [[self._names.known_seq(seq_id), logical] for seq_id, logical in now.owners]
        if now.cached != before.cached:
            entry["cached"] = now.cached
        if slots := self._slot_entries(before.slots, now.slots):
            entry["slots"] = slots
        return entry

    def _slot_entries(self, before: Sequence[SlotContent | None], now: Sequence[SlotContent | None]) -> list[list[int]]:
        pairs = enumerate(zip(before, now, strict=True))
        return [[offset, *self._names.content(new)] for offset, (old, new) in pairs if old != new]

    def _arena_entries(self, arena: list[SlotContent | None], touched: Touched) -> list[list[int]]:
        if len(self._arena) != len(arena):
            self._arena = [None] * len(arena)
        slots = range(len(arena)) if touched.everything else sorted(s for s in touched.slots if s < len(arena))
        changed = [slot for slot in slots if self._arena[slot] != arena[slot]]
        for slot in changed:
            self._arena[slot] = arena[slot]
        return [[slot, *self._names.content(arena[slot])] for slot in changed]

    def _region(self, region: Region) -> dict[str, Any]:
        return {
            "request_id": region.request_id,
            "seq": self._names.known_seq(region.request_id),
            "start": region.start,
            "num_slots": region.num_slots,
            "num_needed": region.num_needed,
            "num_written": region.num_written,
        }


def _pick(blocks: list[BlockState], ids: set[int], touched: Touched) -> Iterable[BlockState]:
    return blocks if touched.everything else (blocks[i] for i in sorted(ids))
