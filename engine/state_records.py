"""What the fold keeps: blocks, sequences, requests, regions and counters, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from engine.cache_events import BlockHash

RequestStatus = Literal["waiting", "running", "preempted", "swapped", "finished", "refused"]


class SlotContent(NamedTuple):
    """The token whose keys and values a slot holds. It stays after a block is freed, until overwritten."""

    seq_id: str
    position: int
    token_id: int
    piece: str


@dataclass
class BlockState:
    """One physical block: who names it (`owners`: seq_id -> logical index), and what its slots hold."""

    block_id: int
    slots: list[SlotContent | None]
    owners: dict[str, int] = field(default_factory=dict)
    block_hash: BlockHash | None = None

    @property
    def ref_cnt(self) -> int:
        return len(self.owners)

    @property
    def status(self) -> Literal["used", "cached", "free"]:
        """used: some table names it. cached: free, but findable by its content. free: neither."""
        if self.owners:
            return "used"
        return "cached" if self.block_hash is not None else "free"


@dataclass
class SequenceState:
    """One sequence with its two cursors: `num_tokens` are known, `num_computed_tokens` have KV written."""

    seq_id: str
    request_id: str
    num_prompt_tokens: int
    token_ids: list[int]
    pieces: list[str]
    num_computed_tokens: int = 0
    block_table: list[int] = field(default_factory=list)
    cpu_block_table: list[int] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def output_text(self) -> str:
        return "".join(self.pieces[self.num_prompt_tokens :])


@dataclass
class RequestState:
    request_id: str
    status: RequestStatus
    seq_ids: list[str]
    max_tokens: int
    n: int = 1
    beam_width: int = 1
    num_output_tokens: int | None = None
    reason: str = ""
    """Why it waits, was refused, preempted or finished: the engine's own sentence or word."""


@dataclass
class Region:
    """A contiguous reservation: `num_slots` held from `start`, `num_needed` asked for."""

    request_id: str
    start: int
    num_slots: int
    num_needed: int
    num_written: int = 0


@dataclass
class Counters:
    """Totals since the start, all in tokens or blocks."""

    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    recompute_queries: int = 0
    recompute_hits: int = 0
    num_scheduled_tokens: int = 0
    num_recomputed_tokens: int = 0
    num_preemptions: int = 0
    num_copies: int = 0
    num_allocations: int = 0
    num_evictions: int = 0
    num_refused: int = 0


def copy_block(block: BlockState) -> BlockState:
    return BlockState(block.block_id, list(block.slots), dict(block.owners), block.block_hash)


def copy_sequence(sequence: SequenceState) -> SequenceState:
    return replace(
        sequence,
        token_ids=list(sequence.token_ids),
        pieces=list(sequence.pieces),
        block_table=list(sequence.block_table),
        cpu_block_table=list(sequence.cpu_block_table),
    )
