"""The event types: everything that ever happens to the KV cache, one small frozen record each.

The engine writes these records and nothing else about memory; pages, text, exports and tests replay them
(`engine/state.py` is the fold, `engine/trace.py` the log). Names and fields are a superset of the KV events
that vLLM and SGLang publish (`BlockStored`, `BlockRemoved`, `AllBlocksCleared`): those carry no block id,
request, reference count or table, ours do.

Words used in the sentences: a *block* is a page of the cache, a *slot* is room for one token's keys and
values. `slot = block_id * block_size + offset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.cache_events import AllBlocksCleared as AllBlocksCleared
from engine.cache_events import BlockRemoved as BlockRemoved
from engine.cache_events import BlockStored as BlockStored
from engine.cache_events import MessageReceived as MessageReceived
from engine.cache_events import MessagesMissed as MessagesMissed
from engine.cache_events import ServerRestarted as ServerRestarted
from engine.event_base import Event as Event
from engine.event_base import ended as ended
from engine.event_base import plural as plural
from engine.event_base import span as span

ShareCause = Literal["prefix_cache", "fork", "sibling", "swap"]
PreemptionMode = Literal["recompute", "swap"]
QueueName = Literal["waiting", "preempted", "swapped"]
FinishReason = Literal["stop", "length", "abort", "beam_pruned", "error"]


# ---- memory comes into being ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PoolCreated(Event):
    """A paged pool, all blocks free. `free_block_queue` is the order in which blocks will be handed out."""

    num_blocks: int
    block_size: int
    num_cpu_blocks: int
    free_block_queue: tuple[int, ...]
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        slots = self.num_blocks * self.block_size
        return f"The pool has {plural(self.num_blocks, 'block')} of {self.block_size}: {plural(slots, 'slot')}."


@dataclass(frozen=True, slots=True)
class ArenaCreated(Event):
    """Memory for contiguous runs. `allocator`: first_fit | best_fit | buddy; `reservation`: the rule's label."""

    num_slots: int
    allocator: str
    reservation: str
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return (
            f"Memory is one stretch of {plural(self.num_slots, 'slot')}, handed out by "
            f"{self.allocator.replace('_', ' ')}; reservation rule: {self.reservation}."
        )


# ---- requests come, wait, run and go ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestAdded(Event):
    """A request joins the waiting queue. `pieces[i]` is the display text of `prompt_token_ids[i]`.

    `num_output_tokens` is the true output length when the driver knows it (replayed arrivals), else None.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    pieces: tuple[str, ...]
    max_tokens: int
    n: int = 1
    beam_width: int = 1
    num_output_tokens: int | None = None

    def describe(self) -> str:
        return f"Request {self.request_id} arrives with {plural(len(self.prompt_token_ids), 'prompt token')}."


@dataclass(frozen=True, slots=True)
class RequestRefused(Event):
    """A request that can never be served, or not in this memory. `reason` names the limit."""

    request_id: str
    reason: str

    def describe(self) -> str:
        return ended(f"Request {self.request_id} is refused: {self.reason}")


@dataclass(frozen=True, slots=True)
class AdmissionDeferred(Event):
    """The head of the queue cannot start yet. Written once for each new reason, not every step."""

    request_id: str
    reason: str

    def describe(self) -> str:
        return ended(f"Request {self.request_id} waits: {self.reason}")


@dataclass(frozen=True, slots=True)
class RequestAdmitted(Event):
    """A request starts running, from the named queue."""

    request_id: str
    queue: QueueName

    def describe(self) -> str:
        verb = "starts" if self.queue == "waiting" else "resumes"
        return f"Request {self.request_id} {verb}."


@dataclass(frozen=True, slots=True)
class RequestPreempted(Event):
    """A running request gives back all its blocks. mode: recompute | swap (paper section 4.5)."""

    request_id: str
    mode: PreemptionMode
    reason: str

    def describe(self) -> str:
        how = "its keys and values will be computed again" if self.mode == "recompute" else "swapped to CPU memory"
        return ended(f"Request {self.request_id} is preempted ({how}): {self.reason}")


@dataclass(frozen=True, slots=True)
class RequestFinished(Event):
    """`error`: the sentence of a request that ended before its time."""

    request_id: str
    reason: FinishReason
    error: str = ""

    def describe(self) -> str:
        done = f"Request {self.request_id} is done ({self.reason.replace('_', ' ')})."
        return ended(f"{done} {self.error}") if self.error else done


# ---- sequences: the unit that owns a block table -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrefixQueried(Event):
    """A prefix-cache look-up, in tokens. `recomputation` is true for a request that ran before."""

    seq_id: str
    num_query_tokens: int
    num_hit_tokens: int
    recomputation: bool

    def describe(self) -> str:
        found = self.num_hit_tokens or "nothing"
        return f"{self.seq_id} finds {found} of its {plural(self.num_query_tokens, 'token')} in the prefix cache."


@dataclass(frozen=True, slots=True)
class SequenceScheduled(Event):
    """This step computes tokens `start .. start + num_new_tokens - 1` of the sequence."""

    seq_id: str
    start: int
    num_new_tokens: int
    num_recomputed_tokens: int = 0

    def describe(self) -> str:
        again = f" ({self.num_recomputed_tokens} again)" if self.num_recomputed_tokens else ""
        return f"{self.seq_id} runs {span(self.start, self.num_new_tokens, 'token')}{again}."


@dataclass(frozen=True, slots=True)
class SequenceForked(Event):
    """A new sequence that starts as a copy of the parent: same tokens, same blocks, nothing copied yet."""

    parent_seq_id: str
    seq_id: str
    request_id: str

    def describe(self) -> str:
        return f"{self.seq_id} forks from {self.parent_seq_id}."


@dataclass(frozen=True, slots=True)
class TokenSampled(Event):
    """A token is known; its keys and values are not written until the next step runs it."""

    seq_id: str
    position: int
    token_id: int
    piece: str
    logprob: float | None = None

    def describe(self) -> str:
        return f"{self.seq_id} chooses token {self.position}: {self.piece!r}. Its keys and values are not written yet."


@dataclass(frozen=True, slots=True)
class SlotsWritten(Event):
    """Keys and values of tokens `start ..` are now in `slots` (one each, in token order)."""

    seq_id: str
    start: int
    slots: tuple[int, ...]
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        where = f"slot {self.slots[0]}" if len(self.slots) == 1 else f"{len(self.slots)} slots"
        return f"{self.seq_id} writes {span(self.start, len(self.slots), 'token')} into {where}."


@dataclass(frozen=True, slots=True)
class SequenceFinished(Event):
    seq_id: str
    reason: FinishReason

    def describe(self) -> str:
        return f"{self.seq_id} ends ({self.reason.replace('_', ' ')})."


# ---- blocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockAllocated(Event):
    """A free block becomes `block_table[logical_index]` of the sequence, with `ref_cnt` 1."""

    block_id: int
    seq_id: str
    logical_index: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return f"{self.seq_id} takes free block {self.block_id} as its block {self.logical_index}."


@dataclass(frozen=True, slots=True)
class BlockShared(Event):
    """One more block table names the block. `ref_cnt` is the count after."""

    block_id: int
    seq_id: str
    logical_index: int
    ref_cnt: int
    cause: ShareCause
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if self.ref_cnt == 1:
            return f"{self.seq_id} takes block {self.block_id}, still cached, as its block {self.logical_index}."
        return (
            f"{self.seq_id} points its block {self.logical_index} at block {self.block_id}, "
            f"now shared by {self.ref_cnt}."
        )


@dataclass(frozen=True, slots=True)
class BlockCopied(Event):
    """Copy-on-write (paper section 4.4): before writing, the sequence gets its own copy of a shared block.

    `num_slots` slots hold data and are copied; `src_ref_cnt` is the source's count after the copy.
    """

    src_block_id: int
    dst_block_id: int
    seq_id: str
    logical_index: int
    num_slots: int
    src_ref_cnt: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return (
            f"{self.seq_id} is about to write into shared block {self.src_block_id}, so it copies "
            f"{plural(self.num_slots, 'slot')} to block {self.dst_block_id}. "
            f"Block {self.src_block_id} is left with {plural(self.src_ref_cnt, 'holder')}."
        )


@dataclass(frozen=True, slots=True)
class BlockFreed(Event):
    """One table lets go of the block. At `ref_cnt` 0 it joins the free queue.

    A block that is findable by its hash goes to the tail (kept as long as possible), any other to the head.
    """

    block_id: int
    seq_id: str
    logical_index: int
    ref_cnt: int
    cached: bool
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if self.ref_cnt:
            return f"{self.seq_id} lets go of block {self.block_id}; {plural(self.ref_cnt, 'holder')} left."
        kept = ", still findable by its content" if self.cached else ""
        return f"{self.seq_id} frees block {self.block_id}{kept}."


@dataclass(frozen=True, slots=True)
class BlockSwappedOut(Event):
    """Block data is copied to a block of the CPU pool, which the sequence's CPU table now names."""

    block_id: int
    cpu_block_id: int
    seq_id: str
    logical_index: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        where = f"from block {self.block_id} to CPU block {self.cpu_block_id}"
        return f"{self.seq_id}'s block {self.logical_index} goes {where}."


@dataclass(frozen=True, slots=True)
class BlockSwappedIn(Event):
    """Block data is back from the CPU pool; the CPU block loses this holder."""

    cpu_block_id: int
    block_id: int
    seq_id: str
    logical_index: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        where = f"from CPU block {self.cpu_block_id} to block {self.block_id}"
        return f"{self.seq_id}'s block {self.logical_index} comes back {where}."


@dataclass(frozen=True, slots=True)
class BlocksShuffled(Event):
    """Physical blocks change places and every table follows: old block `i` is now block `permutation[i]`."""

    permutation: tuple[int, ...]
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        moved = sum(old != new for old, new in enumerate(self.permutation))
        return f"{plural(moved, 'block')} change places in memory; every block table follows."


# ---- contiguous reservations (the baselines) ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegionReserved(Event):
    """A run of slots is set aside for the whole request. `num_needed` was asked, `num_slots` is held."""

    request_id: str
    start: int
    num_slots: int
    num_needed: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        asked = f", of which it asked for {self.num_needed}" if self.num_needed != self.num_slots else ""
        return f"{self.request_id} reserves {span(self.start, self.num_slots, 'slot')}{asked}."


@dataclass(frozen=True, slots=True)
class RegionFreed(Event):
    request_id: str
    start: int
    num_slots: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return f"{self.request_id} gives back {span(self.start, self.num_slots, 'slot')}."


# ---- the beat -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepCompleted(Event):
    """End of one scheduler iteration. `elapsed_ms` is wall time, measured, including the model."""

    num_scheduled_tokens: int
    num_running: int
    num_waiting: int
    elapsed_ms: float
    group: ClassVar[str] = "beat"

    def describe(self) -> str:
        return f"Step {self.step} ran {plural(self.num_scheduled_tokens, 'token')}."


EVENT_TYPES: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__subclasses__()}
"""Every event type by name: the registry the JSON codec and the tests walk."""
