"""State -> frame: what changed in the picture since the frame before.

A frame carries new absolute values, never arithmetic, so applying one is assignment: `10_frames.js` of the map
in the browser, `tests/helpers/replay_frames.py` in the tests. Fields, each there only when it changed:

    layout      {block_size, num_blocks, num_cpu_blocks, num_slots}: memory and sequences start afresh
    new_tokens  [[token_id, text]]     appended to the token dictionary; slots and sequences name tokens by index
    new_seqs    [{seq_id, request_id, letter, colour}]   appended to the sequence dictionary, same use
    blocks, cpu_blocks  [{id, owners: [[seq, logical]], cached, slots: [[offset, seq, position, token] | [offset]]}]
    arena       [[slot, seq, position, token] | [slot]]
    regions     [{request_id, seq, start, num_slots, num_needed, num_written}]        all of them
    seqs        [{seq, of, keep, add, num_prompt, num_computed, table, cpu_table, finish}]
                tokens: the first `keep` of sequence `of`, then the tokens `add`
    requests    [{request_id, status, reason, seqs}]
    next_free   [block ids]            the head of the free queue
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from engine.trace.state import BlockState, CacheState, Region, RequestState, SequenceState, SlotContent
from views.browser.text_safe import visible_piece
from views.memory_map.dirty import EVERYTHING, DirtySet
from views.memory_map.labels import OwnerLabels

Frame = dict[str, Any]

NUM_NEXT_FREE = 8
"""How much of the free queue's head a frame shows."""


class FrameEncoder:
    """Remembers the last state and writes the difference to the next. Frames must be applied in order."""

    def __init__(self) -> None:
        self._names = FrameDictionaries()
        self._memory = MemoryEncoder(self._names)
        self._sequences = SequenceEncoder(self._names)
        self._layout: dict[str, int] = {}

    def reset(self) -> None:
        """The next frame is complete: it follows from no other."""
        self._layout = {}
        self._memory.forget()
        self._sequences.forget()

    def encode(
        self, state: CacheState, dirty: DirtySet = EVERYTHING, parents: Mapping[str, str] | None = None
    ) -> Frame:
        """The difference from the state encoded before. `parents[fork] = parent` saves sending tokens twice."""
        frame: Frame = {}
        layout = _layout_of(state)
        if layout != self._layout:
            self.reset()
            frame["layout"] = self._layout = layout
            dirty = EVERYTHING
        frame |= self._sequences.encode(state, dirty, parents or {})
        frame |= self._memory.encode(state, dirty)
        return frame | self._names.take_new()


def _layout_of(state: CacheState) -> dict[str, int]:
    return {
        "block_size": state.block_size,
        "num_blocks": len(state.blocks),
        "num_cpu_blocks": len(state.cpu_blocks),
        "num_slots": len(state.arena),
    }


class FrameDictionaries:
    """Indices for sequences and tokens: each is sent once in full, then named by its index.

    `take_new()` returns what the reader of the frames has not been sent yet.
    """

    def __init__(self) -> None:
        self._labels = OwnerLabels()
        self._seqs: dict[str, int] = {}
        self._tokens: dict[tuple[int, str], int] = {}
        self._new_seqs: list[dict[str, Any]] = []
        self._new_tokens: list[list[Any]] = []

    def seq(self, seq_id: str, request_id: str) -> int:
        """The index of a sequence; unseen ones get a letter and a colour."""
        if seq_id not in self._seqs:
            self._seqs[seq_id] = len(self._seqs)
            label = self._labels.of(seq_id, request_id)
            self._new_seqs.append(
                {"seq_id": seq_id, "request_id": request_id, "letter": label.letter, "colour": label.colour}
            )
        return self._seqs[seq_id]

    def known_seq(self, seq_id: str) -> int:
        """The index of a sequence already named, -1 for none."""
        return self._seqs.get(seq_id, -1)

    def token(self, token_id: int, piece: str) -> int:
        """The index of a token: its id and its text made visible."""
        key = (token_id, piece)
        if key not in self._tokens:
            self._tokens[key] = len(self._tokens)
            self._new_tokens.append([token_id, visible_piece(piece)])
        return self._tokens[key]

    def content(self, content: SlotContent | None) -> tuple[int, ...]:
        """What a slot holds as (sequence, position, token); () for nothing."""
        if content is None:
            return ()
        return self.known_seq(content.seq_id), content.position, self.token(content.token_id, content.piece)

    def take_new(self) -> dict[str, Any]:
        """`new_seqs` and `new_tokens` since the last call, each only when there are any."""
        news = {"new_seqs": self._new_seqs, "new_tokens": self._new_tokens}
        self._new_seqs, self._new_tokens = [], []
        return {key: value for key, value in news.items() if value}


@dataclass
class _SequenceShadow:
    token_ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(
        default_factory=lambda: {"num_prompt": 0, "num_computed": 0, "table": [], "cpu_table": [], "finish": None}
    )


class SequenceEncoder:
    """Remembers what the reader of the frames already knows of sequences and requests."""

    def __init__(self, names: FrameDictionaries) -> None:
        self._names = names
        self.forget()

    def forget(self) -> None:
        """The reader knows no sequence's state."""
        self._seqs: dict[str, _SequenceShadow] = {}
        self._requests: dict[str, dict[str, Any]] = {}

    def encode(self, state: CacheState, dirty: DirtySet, parents: Mapping[str, str]) -> dict[str, Any]:
        """Fields seqs and requests, each only when it changed."""
        sequences = [s for s in state.sequences.values() if dirty.everything or s.seq_id in dirty.seq_ids]
        requests = [r for r in state.requests.values() if dirty.everything or r.request_id in dirty.request_ids]
        entries = (self._sequence_entry(sequence, parents.get(sequence.seq_id)) for sequence in sequences)
        seqs = [entry for entry in entries if len(entry) > 1]
        changed = [entry for request in requests if (entry := self._request_entry(request)) is not None]
        return {key: value for key, value in (("seqs", seqs), ("requests", changed)) if value}

    def _sequence_entry(self, sequence: SequenceState, parent_id: str | None) -> dict[str, Any]:
        entry: dict[str, Any] = {"seq": self._names.seq(sequence.seq_id, sequence.request_id)}
        is_new = sequence.seq_id not in self._seqs
        known = self._seqs.setdefault(sequence.seq_id, _SequenceShadow())
        parent = self._seqs.get(parent_id) if is_new and parent_id is not None else None
        entry |= self._new_tokens(sequence, known, parent, parent_id)
        now = {
            "num_prompt": sequence.num_prompt_tokens,
            "num_computed": sequence.num_computed_tokens,
            "table": list(sequence.block_table),
            "cpu_table": list(sequence.cpu_block_table),
            "finish": sequence.finish_reason,
        }
        entry |= {key: value for key, value in now.items() if value != known.fields[key]}
        known.fields = now
        return entry

    def _new_tokens(
        self, sequence: SequenceState, known: _SequenceShadow, parent: _SequenceShadow | None, parent_id: str | None
    ) -> dict[str, Any]:
        """Tokens grow at the end; a fork starts from its parent's, so only what follows is sent."""
        source, source_id = (known, sequence.seq_id) if parent is None else (parent, parent_id)
        kept = _num_kept(source, sequence)
        if parent is None and kept == len(known.token_ids) == sequence.num_tokens:
            return {}
        added = zip(sequence.token_ids[kept:], sequence.pieces[kept:], strict=True)
        known.token_ids, known.pieces = list(sequence.token_ids), list(sequence.pieces)
        return {
            "of": self._names.known_seq(source_id or ""),
            "keep": kept,
            "add": [self._names.token(token_id, piece) for token_id, piece in added],
        }

    def _request_entry(self, request: RequestState) -> dict[str, Any] | None:
        entry = {
            "request_id": request.request_id,
            "status": request.status,
            "reason": request.reason,
            "seqs": [self._names.known_seq(seq_id) for seq_id in request.seq_ids],
        }
        if self._requests.get(request.request_id) == entry:
            return None
        self._requests[request.request_id] = entry
        return entry


def _num_kept(source: _SequenceShadow, sequence: SequenceState) -> int:
    """How many of the source's first tokens the sequence starts with. Whole lists are compared first, at C speed."""
    length = len(source.token_ids)
    if sequence.token_ids[:length] == source.token_ids and sequence.pieces[:length] == source.pieces:
        return length
    pairs = zip(source.token_ids, source.pieces, sequence.token_ids, sequence.pieces, strict=False)
    return next((i for i, (a, b, c, d) in enumerate(pairs) if (a, b) != (c, d)), min(length, sequence.num_tokens))


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

    def encode(self, state: CacheState, dirty: DirtySet) -> dict[str, Any]:
        """Fields blocks, cpu_blocks, arena, regions and next_free, each only when it changed."""
        fields = {
            "blocks": self._block_entries(_pick(state.blocks, dirty.blocks, dirty), self._blocks),
            "cpu_blocks": self._block_entries(_pick(state.cpu_blocks, dirty.cpu_blocks, dirty), self._cpu_blocks),
            "arena": self._arena_entries(state.arena, dirty),
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

    def _arena_entries(self, arena: list[SlotContent | None], dirty: DirtySet) -> list[list[int]]:
        if len(self._arena) != len(arena):
            self._arena = [None] * len(arena)
        slots = range(len(arena)) if dirty.everything else sorted(s for s in dirty.slots if s < len(arena))
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


def _pick(blocks: list[BlockState], ids: set[int], dirty: DirtySet) -> Iterable[BlockState]:
    return blocks if dirty.everything else (blocks[i] for i in sorted(ids))
