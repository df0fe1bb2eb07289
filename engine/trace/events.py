"""The event types: everything that ever happens to the KV cache, one small frozen record each.

The engine writes these records and nothing else about memory; pages, text, exports and tests replay them
(`engine/trace/state.py` is the fold, `engine/trace/trace.py` the log). Names and fields are a superset of the KV events
that vLLM and SGLang publish (`BlockStored`, `BlockRemoved`, `AllBlocksCleared`): those carry no block id,
request, reference count or table, ours do.

Words used in the sentences: a *block* is a page of the cache, a *slot* is room for one token's keys and
values. `slot = block_id * block_size + offset`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from engine.i18n import N_, _, blocks_counted, counted, slots_counted
from engine.trace.cache_events import AllBlocksCleared as AllBlocksCleared
from engine.trace.cache_events import BlockRemoved as BlockRemoved
from engine.trace.cache_events import BlockStored as BlockStored
from engine.trace.cache_events import MessageReceived as MessageReceived
from engine.trace.cache_events import MessagesMissed as MessagesMissed
from engine.trace.cache_events import ServerRestarted as ServerRestarted
from engine.trace.event_base import Event as Event
from engine.trace.event_base import ended as ended
from engine.trace.event_base import slot_span as slot_span
from engine.trace.event_base import token_span as token_span
from engine.trace.record import record

ShareCause = Literal["prefix_cache", "fork", "sibling", "swap"]
PreemptionMode = Literal["recompute", "swap"]
QueueName = Literal["waiting", "preempted", "swapped"]
FinishReason = Literal["stop", "length", "abort", "beam_pruned", "error"]
FINISH_REASONS: dict[str, str] = {
    "stop": N_("stop"), "length": N_("length"), "abort": N_("abort"), "beam_pruned": N_("beam pruned"),
    "error": N_("error"),
}  # fmt: skip
"""Why a request ended, in words."""
ALLOCATOR_NAMES: dict[str, str] = {"first_fit": N_("first fit"), "best_fit": N_("best fit"), "buddy": N_("buddy")}


# ---- memory comes into being ------------------------------------------------------------------------


@record
class PoolCreated(Event):
    """A paged pool, all blocks free. `free_block_queue` is the order in which blocks will be handed out."""

    num_blocks: int
    block_size: int
    num_cpu_blocks: int
    free_block_queue: tuple[int, ...]
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return _("The pool has {blocks} of {block_size}: {slots}.").format(
            blocks=blocks_counted(self.num_blocks),
            block_size=self.block_size,
            slots=slots_counted(self.num_blocks * self.block_size),
        )


@record
class ArenaCreated(Event):
    """Memory for contiguous runs. `allocator`: first_fit | best_fit | buddy; `reservation`: the rule's label."""

    num_slots: int
    allocator: str
    reservation: str
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return counted(
            "Memory is one contiguous region of {n} slot, handed out by {allocator}; reservation rule: {reservation}.",
            "Memory is one contiguous region of {n} slots, handed out by {allocator}; reservation rule: {reservation}.",
            self.num_slots,
            allocator=_(ALLOCATOR_NAMES.get(self.allocator, self.allocator)),
            reservation=self.reservation,
        )


# ---- requests come, wait, run and go ------------------------------------------------------------------


@record
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
        return counted(
            "Request {request_id} arrives with {n} prompt token.",
            "Request {request_id} arrives with {n} prompt tokens.",
            len(self.prompt_token_ids),
            request_id=self.request_id,
        )


@record
class RequestRefused(Event):
    """A request that can never be served, or not in this memory. `reason` names the limit."""

    request_id: str
    reason: str

    def describe(self) -> str:
        return ended(
            _("Request {request_id} is refused: {reason}").format(request_id=self.request_id, reason=self.reason)
        )


@record
class AdmissionDeferred(Event):
    """The head of the queue cannot start yet. Written once for each new reason, not every step."""

    request_id: str
    reason: str

    def describe(self) -> str:
        return ended(_("Request {request_id} waits: {reason}").format(request_id=self.request_id, reason=self.reason))


@record
class RequestAdmitted(Event):
    """A request starts running, from the named queue."""

    request_id: str
    queue: QueueName

    def describe(self) -> str:
        starts = self.queue == "waiting"
        sentence = _("Request {request_id} starts.") if starts else _("Request {request_id} resumes.")
        return sentence.format(request_id=self.request_id)


@record
class RequestPreempted(Event):
    """A running request gives back all its blocks. mode: recompute | swap (paper section 4.5)."""

    request_id: str
    mode: PreemptionMode
    reason: str

    def describe(self) -> str:
        sentence = (
            _("Request {request_id} is preempted (its keys and values will be computed again): {reason}")
            if self.mode == "recompute"
            else _("Request {request_id} is preempted (swapped to CPU memory): {reason}")
        )
        return ended(sentence.format(request_id=self.request_id, reason=self.reason))


@record
class RequestFinished(Event):
    """`error`: the sentence of a request that ended before its time."""

    request_id: str
    reason: FinishReason
    error: str = ""

    def describe(self) -> str:
        done = _("Request {request_id} is done ({reason}).").format(
            request_id=self.request_id, reason=_(FINISH_REASONS.get(self.reason, self.reason))
        )
        return ended(f"{done} {self.error}") if self.error else done


# ---- sequences: the unit that owns a block table -------------------------------------------------------


@record
class PrefixQueried(Event):
    """A prefix-cache look-up, in tokens. `recomputation` is true for a request that ran before."""

    seq_id: str
    num_query_tokens: int
    num_hit_tokens: int
    recomputation: bool

    def describe(self) -> str:
        found = self.num_hit_tokens or _("nothing")
        return counted(
            "{seq_id} finds {found} of its {n} token in the prefix cache.",
            "{seq_id} finds {found} of its {n} tokens in the prefix cache.",
            self.num_query_tokens,
            seq_id=self.seq_id,
            found=found,
        )


@record
class SequenceScheduled(Event):
    """This step computes tokens `start .. start + num_new_tokens - 1` of the sequence."""

    seq_id: str
    start: int
    num_new_tokens: int
    num_recomputed_tokens: int = 0

    def describe(self) -> str:
        again = self.num_recomputed_tokens
        sentence = _("{seq_id} runs {tokens} ({again} again).") if again else _("{seq_id} runs {tokens}.")
        tokens = token_span(self.start, self.num_new_tokens)
        return sentence.format(seq_id=self.seq_id, tokens=tokens, again=again)


@record
class SequenceForked(Event):
    """A new sequence that starts as a copy of the parent: same tokens, same blocks, nothing copied yet."""

    parent_seq_id: str
    seq_id: str
    request_id: str

    def describe(self) -> str:
        return _("{seq_id} forks from {parent_seq_id}.").format(seq_id=self.seq_id, parent_seq_id=self.parent_seq_id)


@record
class TokenSampled(Event):
    """A token is known; its keys and values are not written until the next step runs it."""

    seq_id: str
    position: int
    token_id: int
    piece: str
    logprob: float | None = None

    def describe(self) -> str:
        return _("{seq_id} chooses token {position}: {piece}. Its keys and values are not written yet.").format(
            seq_id=self.seq_id, position=self.position, piece=repr(self.piece)
        )


@record
class SlotsWritten(Event):
    """Keys and values of tokens `start ..` are now in `slots` (one each, in token order)."""

    seq_id: str
    start: int
    slots: tuple[int, ...]
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if len(self.slots) == 1:
            return _("{seq_id} writes token {position} into slot {slot}.").format(
                seq_id=self.seq_id, position=self.start, slot=self.slots[0]
            )
        return counted(
            "{seq_id} writes {tokens} into {n} slot.",
            "{seq_id} writes {tokens} into {n} slots.",
            len(self.slots),
            seq_id=self.seq_id,
            tokens=token_span(self.start, len(self.slots)),
        )


@record
class SequenceFinished(Event):
    """A sequence has ended; `reason` says why."""

    seq_id: str
    reason: FinishReason

    def describe(self) -> str:
        reason = _(FINISH_REASONS.get(self.reason, self.reason))
        return _("{seq_id} ends ({reason}).").format(seq_id=self.seq_id, reason=reason)


# ---- blocks ------------------------------------------------------------------------------------------


@record
class BlockAllocated(Event):
    """A free block becomes `block_table[logical_index]` of the sequence, with `ref_cnt` 1."""

    block_id: int
    seq_id: str
    logical_index: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return _("{seq_id} takes free block {block_id} as its block {logical_index}.").format(
            seq_id=self.seq_id, block_id=self.block_id, logical_index=self.logical_index
        )


@record
class BlockShared(Event):
    """One more block table references the block. `ref_cnt` is the count after."""

    block_id: int
    seq_id: str
    logical_index: int
    ref_cnt: int
    cause: ShareCause
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        sentence = (
            _("{seq_id} takes block {block_id}, still cached, as its block {logical_index}.")
            if self.ref_cnt == 1
            else _("{seq_id} points its block {logical_index} at block {block_id}, now shared by {ref_cnt}.")
        )
        return sentence.format(
            seq_id=self.seq_id, block_id=self.block_id, logical_index=self.logical_index, ref_cnt=self.ref_cnt
        )


@record
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
        return _(
            "{seq_id} is about to write into shared block {src_block_id}, so it copies {slots} to block "
            "{dst_block_id}. Block {src_block_id} is left with {references}."
        ).format(
            seq_id=self.seq_id,
            src_block_id=self.src_block_id,
            dst_block_id=self.dst_block_id,
            slots=slots_counted(self.num_slots),
            references=counted("{n} reference", "{n} references", self.src_ref_cnt),
        )


@record
class BlockFreed(Event):
    """One table drops its reference to the block. At `ref_cnt` 0 the block joins the free queue.

    A cached block goes to the tail (evicted as late as possible), any other to the head.
    """

    block_id: int
    seq_id: str
    logical_index: int
    ref_cnt: int
    cached: bool
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if self.ref_cnt:
            return counted(
                "{seq_id} releases block {block_id}; {n} reference left.",
                "{seq_id} releases block {block_id}; {n} references left.",
                self.ref_cnt,
                seq_id=self.seq_id,
                block_id=self.block_id,
            )
        sentence = (
            _("{seq_id} frees block {block_id}, which stays cached.")
            if self.cached
            else _("{seq_id} frees block {block_id}.")
        )
        return sentence.format(seq_id=self.seq_id, block_id=self.block_id)


@record
class BlockSwappedOut(Event):
    """Block data is copied to a block of the CPU pool, the next entry of the sequence's CPU table."""

    block_id: int
    cpu_block_id: int
    seq_id: str
    logical_index: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return _("{seq_id}'s block {logical_index} goes from block {block_id} to CPU block {cpu_block_id}.").format(
            seq_id=self.seq_id,
            logical_index=self.logical_index,
            block_id=self.block_id,
            cpu_block_id=self.cpu_block_id,
        )


@record
class BlockSwappedIn(Event):
    """Block data is back from the CPU pool; the sequence drops its reference to the CPU block."""

    cpu_block_id: int
    block_id: int
    seq_id: str
    logical_index: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return _(
            "{seq_id}'s block {logical_index} comes back from CPU block {cpu_block_id} to block {block_id}."
        ).format(
            seq_id=self.seq_id,
            logical_index=self.logical_index,
            cpu_block_id=self.cpu_block_id,
            block_id=self.block_id,
        )


@record
class BlocksShuffled(Event):
    """Physical blocks change places and every table follows: old block `i` is now block `permutation[i]`."""

    permutation: tuple[int, ...]
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        moved = sum(old != new for old, new in enumerate(self.permutation))
        return counted(
            "{n} block moves in memory; every block table is updated.",
            "{n} blocks move in memory; every block table is updated.",
            moved,
        )


# ---- contiguous reservations (the baselines) ------------------------------------------------------------


@record
class RegionReserved(Event):
    """A run of slots is set aside for the whole request. `num_needed` was asked, `num_slots` is held."""

    request_id: str
    start: int
    num_slots: int
    num_needed: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        sentence = (
            _("{request_id} reserves {slots}, of which it asked for {num_needed}.")
            if self.num_needed != self.num_slots
            else _("{request_id} reserves {slots}.")
        )
        slots = slot_span(self.start, self.num_slots)
        return sentence.format(request_id=self.request_id, slots=slots, num_needed=self.num_needed)


@record
class RegionFreed(Event):
    """A request gives its region back."""

    request_id: str
    start: int
    num_slots: int
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        slots = slot_span(self.start, self.num_slots)
        return _("{request_id} gives back {slots}.").format(request_id=self.request_id, slots=slots)


# ---- steps -----------------------------------------------------------------------------------------


@record
class StepCompleted(Event):
    """End of one scheduler iteration. `elapsed_ms` is wall time, measured, including the model."""

    num_scheduled_tokens: int
    num_running: int
    num_waiting: int
    elapsed_ms: float
    group: ClassVar[str] = "step"

    def describe(self) -> str:
        return counted(
            "Step {step} ran {n} token.", "Step {step} ran {n} tokens.", self.num_scheduled_tokens, step=self.step
        )


EVENT_TYPES: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__subclasses__()}
"""Every event type by name: the registry the JSON codec and the tests walk."""
