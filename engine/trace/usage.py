"""How memory is used, counted from a CacheState: every figure a page shows about memory is a field of these.

Blocks and slots are counted apart on purpose. A gauge of blocks says how much is taken; a gauge of slots says how
much of that holds keys and values, and the two differ by the empty tails (and, with sharing, by what is not copied).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.trace.state import BlockState, CacheState, SequenceState


@dataclass(frozen=True, slots=True)
class Usage:
    """One moment of one pool. Blocks and slots are physical, so a shared block counts once.

    num_written_slots: slots in used blocks that hold keys and values. num_empty_slots: slots in used blocks that
    hold none yet. num_copies_avoided: blocks that would exist without sharing, less those that do.
    num_tokens_known, num_tokens_written: over the sequences that are not finished; a shared token counts in each.
    """

    num_blocks: int
    block_size: int
    num_used_blocks: int
    num_cached_blocks: int
    num_free_blocks: int
    num_shared_blocks: int
    num_copies_avoided: int
    num_slots: int
    num_held_slots: int
    num_written_slots: int
    num_empty_slots: int
    num_tokens_known: int
    num_tokens_written: int

    @property
    def num_private_blocks(self) -> int:
        """Used blocks that one table alone references."""
        return self.num_used_blocks - self.num_shared_blocks

    @property
    def most_empty_in_last_block(self) -> int:
        """Slots that the last block of a sequence can have empty at most: all but the one it was taken for."""
        return self.block_size - 1

    @property
    def block_fraction(self) -> float:
        """Used blocks over all blocks, 0 to 1: what servers report as KV cache usage."""
        return _fraction(self.num_used_blocks, self.num_blocks)

    @property
    def slot_fraction(self) -> float:
        """Slots that hold keys and values of running sequences over all slots, 0 to 1."""
        return _fraction(self.num_written_slots, self.num_slots)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One row of a block table: logical block `logical_index` lives in physical block `block_id`.

    Its slots are `first_slot` to `last_slot` of physical memory; the first `num_written` of them hold the keys and
    values of token positions `first_position` on, whose display texts are `pieces`.
    """

    logical_index: int
    block_id: int
    first_slot: int
    last_slot: int
    first_position: int
    num_written: int
    num_empty: int
    ref_cnt: int
    is_cached: bool
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlotAddress:
    """Where one token's keys and values are: `slot = block_table[position // B] * B + position % B`.

    logical_index: `position // block_size`, the row of the block table. offset: `position % block_size`.
    block_id: what that row says. slot: the place in physical memory.
    """

    seq_id: str
    position: int
    block_size: int
    logical_index: int
    offset: int
    block_id: int
    slot: int
    piece: str


def num_held_slots_of(state: CacheState, seq_id: str) -> int:
    """Slots of the blocks in one sequence's table, empty ones included; a shared block counts in each."""
    return len(state.sequences[seq_id].block_table) * state.block_size


def usage_of(state: CacheState) -> Usage:
    """Count one state of a paged pool."""
    used = [block for block in state.blocks if block.status == "used"]
    written = sum(_num_written(state, block) for block in used)
    live = [sequence for sequence in state.sequences.values() if sequence.finish_reason is None]
    return Usage(
        num_blocks=state.num_blocks,
        block_size=state.block_size,
        num_used_blocks=len(used),
        num_cached_blocks=sum(block.status == "cached" for block in state.blocks),
        num_free_blocks=sum(block.status == "free" for block in state.blocks),
        num_shared_blocks=sum(block.ref_cnt > 1 for block in used),
        num_copies_avoided=sum(block.ref_cnt - 1 for block in used),
        num_slots=state.num_blocks * state.block_size,
        num_held_slots=len(used) * state.block_size,
        num_written_slots=written,
        num_empty_slots=len(used) * state.block_size - written,
        num_tokens_known=sum(sequence.num_tokens for sequence in live),
        num_tokens_written=sum(sequence.num_computed_tokens for sequence in live),
    )


def block_table_of(state: CacheState, seq_id: str) -> list[TableEntry]:
    """The sequence's block table, row by row, in logical order."""
    sequence = state.sequences[seq_id]
    return [_entry(state, sequence, index, block_id) for index, block_id in enumerate(sequence.block_table)]


def address_of(state: CacheState, seq_id: str, position: int) -> SlotAddress:
    """Follow one token through the block table. Raises IndexError when its keys and values are not written."""
    sequence = state.sequences[seq_id]
    if not 0 <= position < sequence.num_computed_tokens or not sequence.block_table:
        raise IndexError(f"{seq_id} has no keys and values of token {position} in the pool.")
    logical_index, offset = divmod(position, state.block_size)
    block_id = sequence.block_table[logical_index]
    return SlotAddress(
        seq_id=seq_id,
        position=position,
        block_size=state.block_size,
        logical_index=logical_index,
        offset=offset,
        block_id=block_id,
        slot=block_id * state.block_size + offset,
        piece=sequence.pieces[position],
    )


def _entry(state: CacheState, sequence: SequenceState, logical_index: int, block_id: int) -> TableEntry:
    start = logical_index * state.block_size
    num_written = _num_written_by(sequence, logical_index, state.block_size)
    block = state.blocks[block_id]
    return TableEntry(
        logical_index=logical_index,
        block_id=block_id,
        first_slot=block_id * state.block_size,
        last_slot=(block_id + 1) * state.block_size - 1,
        first_position=start,
        num_written=num_written,
        num_empty=state.block_size - num_written,
        ref_cnt=block.ref_cnt,
        is_cached=block.block_hash is not None,
        pieces=tuple(sequence.pieces[start : start + num_written]),
    )


def _num_written(state: CacheState, block: BlockState) -> int:
    """Slots of a used block that hold keys and values: as many as the furthest of its sequences wrote."""
    return max(
        _num_written_by(state.sequences[seq_id], logical_index, state.block_size)
        for seq_id, logical_index in block.owners.items()
    )


def _num_written_by(sequence: SequenceState, logical_index: int, block_size: int) -> int:
    return min(max(sequence.num_computed_tokens - logical_index * block_size, 0), block_size)


def _fraction(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
