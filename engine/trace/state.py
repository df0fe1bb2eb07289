"""The fold: what memory and queues look like after some events.

`CacheState.apply(event)` is the only place that knows what an event means for the picture. Pages read the
result; the engine's own invariant check compares it with the live pool, so a picture cannot drift from it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from engine.i18n import _
from engine.trace import events as ev
from engine.trace.cache_events import BlockHash
from engine.trace.cache_view import CacheView

RequestStatus = Literal["waiting", "running", "preempted", "swapped", "finished", "refused"]
MAX_SLOTS = 1 << 24
"""Bound on slots in a replayed pool: a hostile trace cannot ask for more memory than a page could draw."""


class ReplayError(ValueError):
    """An event that does not fit the state before it: a damaged or foreign trace."""


class SlotContent(NamedTuple):
    """The token whose keys and values a slot holds. It stays after a block is freed, until overwritten."""

    seq_id: str
    position: int
    token_id: int
    piece: str


@dataclass
class BlockState:
    """One physical block: whose tables reference it (`owners`: seq_id -> logical index), and what its slots hold."""

    block_id: int
    slots: list[SlotContent | None]
    owners: dict[str, int] = field(default_factory=dict)
    block_hash: BlockHash | None = None

    @property
    def ref_cnt(self) -> int:
        """How many block tables reference the block."""
        return len(self.owners)

    @property
    def status(self) -> Literal["used", "cached", "free"]:
        """used: a table references it. cached: free, but found by its content. free: neither."""
        if self.owners:
            return "used"
        return "cached" if self.block_hash is not None else "free"

    def copy(self) -> BlockState:
        """An independent copy; what the slots hold is immutable, so shared."""
        return BlockState(self.block_id, list(self.slots), dict(self.owners), self.block_hash)


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
        """Tokens known so far, prompt and output."""
        return len(self.token_ids)

    def copy(self) -> SequenceState:
        """An independent copy."""
        return replace(
            self,
            token_ids=list(self.token_ids),
            pieces=list(self.pieces),
            block_table=list(self.block_table),
            cpu_block_table=list(self.cpu_block_table),
        )


@dataclass
class RequestState:
    """One request: where it is, and its sequences in order of creation."""

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


@dataclass
class CacheState:
    """Everything the events say, after some step. Fields are plain; treat a state you were given as read-only."""

    step: int = 0
    block_size: int = 0
    blocks: list[BlockState] = field(default_factory=list)
    cpu_blocks: list[BlockState] = field(default_factory=list)
    free_block_queue: OrderedDict[int, None] = field(default_factory=OrderedDict)
    sequences: dict[str, SequenceState] = field(default_factory=dict)
    requests: dict[str, RequestState] = field(default_factory=dict)
    regions: dict[str, Region] = field(default_factory=dict)
    arena: list[SlotContent | None] = field(default_factory=list)
    allocator: str = ""
    reservation: str = ""
    counters: Counters = field(default_factory=Counters)
    prefix_cache: CacheView = field(default_factory=CacheView)
    """The prefix cache by content: all that a server's stream tells, and the same of our own engine."""

    @property
    def num_blocks(self) -> int:
        """Blocks of the pool; 0 for contiguous memory."""
        return len(self.blocks)

    @property
    def size(self) -> int:
        """Roughly what a copy costs: slots, on the device and the CPU, known tokens, cached blocks."""
        num_slots = len(self.arena) + (len(self.blocks) + len(self.cpu_blocks)) * (self.block_size + 1)
        return num_slots + sum(s.num_tokens for s in self.sequences.values()) + self.prefix_cache.num_blocks

    def copy(self) -> CacheState:
        """An independent copy: folding on does not change this one. (Token contents are immutable, so shared.)"""
        return replace(
            self,
            blocks=[block.copy() for block in self.blocks],
            cpu_blocks=[block.copy() for block in self.cpu_blocks],
            free_block_queue=self.free_block_queue.copy(),
            sequences={seq_id: sequence.copy() for seq_id, sequence in self.sequences.items()},
            requests={i: replace(request, seq_ids=list(request.seq_ids)) for i, request in self.requests.items()},
            regions={i: replace(region) for i, region in self.regions.items()},
            arena=list(self.arena),
            counters=replace(self.counters),
            prefix_cache=self.prefix_cache.copy(),
        )

    def apply(self, event: ev.Event) -> None:
        """Fold one event in. Raises ReplayError when it does not fit what came before."""
        self.step = event.step
        try:
            _HANDLERS[type(event)](self, event)
        except (KeyError, IndexError, ReplayError) as error:
            detail = str(error) if isinstance(error, ReplayError) else "it names something that is not there"
            raise ReplayError(
                _("step {step}: {name} cannot be replayed: {detail}.").format(
                    step=event.step, name=type(event).__name__, detail=detail
                )
            ) from error

    # -- memory --

    def _pool_created(self, e: ev.PoolCreated) -> None:
        self._check_no_memory_yet()
        if e.num_cpu_blocks > e.num_blocks:
            raise ReplayError(_("swap space is at most as large as the pool"))
        if e.block_size < 1 or max(e.num_blocks, e.num_cpu_blocks) * e.block_size > MAX_SLOTS:
            raise ReplayError(_("a pool must have 1 to {max_slots} slots").format(max_slots=MAX_SLOTS))
        if sorted(e.free_block_queue) != list(range(e.num_blocks)):
            raise ReplayError(_("the free queue must name every block once"))
        self.block_size = e.block_size
        self.blocks = [BlockState(i, [None] * e.block_size) for i in range(e.num_blocks)]
        self.cpu_blocks = [BlockState(i, [None] * e.block_size) for i in range(e.num_cpu_blocks)]
        self.free_block_queue = OrderedDict.fromkeys(e.free_block_queue)

    def _arena_created(self, e: ev.ArenaCreated) -> None:
        self._check_no_memory_yet()
        if not 1 <= e.num_slots <= MAX_SLOTS:
            raise ReplayError(_("an arena must have 1 to {max_slots} slots").format(max_slots=MAX_SLOTS))
        self.arena = [None] * e.num_slots
        self.allocator, self.reservation = e.allocator, e.reservation

    def _block_allocated(self, e: ev.BlockAllocated) -> None:
        del self.free_block_queue[e.block_id]
        self._enter(e.seq_id, e.logical_index, e.block_id)
        self.counters.num_allocations += 1

    def _block_shared(self, e: ev.BlockShared) -> None:
        self.free_block_queue.pop(e.block_id, None)
        self._enter(e.seq_id, e.logical_index, e.block_id)
        if e.cause in ("prefix_cache", "sibling"):  # full blocks only: all their tokens are written
            self.sequences[e.seq_id].num_computed_tokens = (e.logical_index + 1) * self.block_size

    def _block_copied(self, e: ev.BlockCopied) -> None:
        source, target = self._block(e.src_block_id), self._block(e.dst_block_id)
        del self.free_block_queue[e.dst_block_id]
        del source.owners[e.seq_id]
        target.owners[e.seq_id] = e.logical_index
        target.slots[: e.num_slots] = source.slots[: e.num_slots]
        self.sequences[e.seq_id].block_table[e.logical_index] = e.dst_block_id
        self.counters.num_copies += 1

    def _block_freed(self, e: ev.BlockFreed) -> None:
        block, sequence = self._block(e.block_id), self.sequences[e.seq_id]
        if sequence.block_table[-1] != e.block_id:
            raise ReplayError(_("blocks are freed tail first"))
        sequence.block_table.pop()
        del block.owners[e.seq_id]
        if not block.owners:
            self.free_block_queue[e.block_id] = None
            self.free_block_queue.move_to_end(e.block_id, last=e.cached)

    def _block_stored(self, e: ev.BlockStored) -> None:
        if e.block_id is not None:
            self._block(e.block_id).block_hash = e.block_hash
        self.prefix_cache.store(e)

    def _block_removed(self, e: ev.BlockRemoved) -> None:
        if e.block_id is not None:
            self._block(e.block_id).block_hash = None
        self.prefix_cache.remove(e)
        self.counters.num_evictions += 1

    def _all_blocks_cleared(self, e: ev.AllBlocksCleared) -> None:
        for block in self.blocks:
            block.block_hash = None
        self.prefix_cache.clear(e)

    def _message_received(self, _e: ev.MessageReceived) -> None:
        """Carries number and time only; it changes no state."""

    def _messages_missed(self, e: ev.MessagesMissed) -> None:
        self.prefix_cache.miss(e)

    def _server_restarted(self, e: ev.ServerRestarted) -> None:
        self.prefix_cache.restart(e)

    def _block_swapped_out(self, e: ev.BlockSwappedOut) -> None:
        cpu_block = self._cpu_block(e.cpu_block_id)
        cpu_block.slots[:] = self._block(e.block_id).slots
        cpu_block.owners[e.seq_id] = e.logical_index
        self.sequences[e.seq_id].cpu_block_table.append(e.cpu_block_id)

    def _block_swapped_in(self, e: ev.BlockSwappedIn) -> None:
        cpu_block, sequence = self._cpu_block(e.cpu_block_id), self.sequences[e.seq_id]
        self._block(e.block_id).slots[:] = cpu_block.slots
        del cpu_block.owners[e.seq_id]
        sequence.cpu_block_table.remove(e.cpu_block_id)

    def _blocks_shuffled(self, e: ev.BlocksShuffled) -> None:
        if sorted(e.permutation) != list(range(self.num_blocks)):
            raise ReplayError(_("a permutation must name every block once"))
        old_blocks = self.blocks
        self.blocks = [old_blocks[0]] * len(old_blocks)
        for old, new in enumerate(e.permutation):
            self.blocks[new] = old_blocks[old]
            old_blocks[old].block_id = new
        self.free_block_queue = OrderedDict.fromkeys(e.permutation[b] for b in self.free_block_queue)
        for sequence in self.sequences.values():
            sequence.block_table = [e.permutation[b] for b in sequence.block_table]

    def _region_reserved(self, e: ev.RegionReserved) -> None:
        if e.start < 0 or e.num_slots < 1 or e.start + e.num_slots > len(self.arena):
            raise ReplayError(_("the region lies outside memory"))
        if not 1 <= e.num_needed <= e.num_slots:
            raise ReplayError(
                _("a region of {num_slots} slots is too small for {num_needed}").format(
                    num_slots=e.num_slots, num_needed=e.num_needed
                )
            )
        if e.request_id in self.regions or e.request_id not in self.requests:
            raise ReplayError(_("a region belongs to one request, and a request has one region"))
        if any(e.start < r.start + r.num_slots and r.start < e.start + e.num_slots for r in self.regions.values()):
            raise ReplayError(_("the region overlaps another one"))
        self.regions[e.request_id] = Region(e.request_id, e.start, e.num_slots, e.num_needed)

    def _region_freed(self, e: ev.RegionFreed) -> None:
        region = self.regions.pop(e.request_id)
        if (region.start, region.num_slots) != (e.start, e.num_slots):
            raise ReplayError(_("the region given back is not the one that was reserved"))

    def _slots_written(self, e: ev.SlotsWritten) -> None:
        sequence = self.sequences[e.seq_id]
        if not 0 <= e.start <= e.start + len(e.slots) <= sequence.num_tokens:
            raise ReplayError(
                _("only known tokens can be written, and {seq_id} has {num_tokens}").format(
                    seq_id=e.seq_id, num_tokens=sequence.num_tokens
                )
            )
        for position, slot in enumerate(e.slots, e.start):
            content = SlotContent(e.seq_id, position, sequence.token_ids[position], sequence.pieces[position])
            if self.arena:
                self._write_into_region(sequence.request_id, slot, content)
            elif self.blocks:
                self._block(slot // self.block_size).slots[slot % self.block_size] = content
            else:
                raise ReplayError(_("there is no memory to write into"))
        sequence.num_computed_tokens = e.start + len(e.slots)

    def _write_into_region(self, request_id: str, slot: int, content: SlotContent) -> None:
        region = self.regions[request_id]
        if not region.start <= slot < region.start + region.num_needed:
            raise ReplayError(
                _("slot {slot} is not one that {request_id} asked for").format(slot=slot, request_id=request_id)
            )
        self.arena[slot] = content
        region.num_written = content.position + 1

    # -- requests and sequences --

    def _request_added(self, e: ev.RequestAdded) -> None:
        if len(e.pieces) != len(e.prompt_token_ids):
            raise ReplayError(_("a request needs one piece of text a prompt token"))
        self.sequences[e.request_id] = SequenceState(
            e.request_id, e.request_id, len(e.prompt_token_ids), list(e.prompt_token_ids), list(e.pieces)
        )
        self.requests[e.request_id] = RequestState(
            e.request_id, "waiting", [e.request_id], e.max_tokens, e.n, e.beam_width, e.num_output_tokens
        )

    def _request_refused(self, e: ev.RequestRefused) -> None:
        """A refused request was never added; a refused duplicate leaves its running namesake alone."""
        self.counters.num_refused += 1
        self.requests.setdefault(e.request_id, RequestState(e.request_id, "refused", [], 0, reason=e.reason))

    def _admission_deferred(self, e: ev.AdmissionDeferred) -> None:
        self.requests[e.request_id].reason = e.reason

    def _request_admitted(self, e: ev.RequestAdmitted) -> None:
        request = self.requests[e.request_id]
        request.status, request.reason = "running", ""

    def _request_preempted(self, e: ev.RequestPreempted) -> None:
        request = self.requests[e.request_id]
        request.status = "preempted" if e.mode == "recompute" else "swapped"
        request.reason = e.reason
        self.counters.num_preemptions += 1
        if e.mode == "recompute":
            for seq_id in request.seq_ids:
                if self.sequences[seq_id].finish_reason is None:
                    self.sequences[seq_id].num_computed_tokens = 0

    def _request_finished(self, e: ev.RequestFinished) -> None:
        request = self.requests[e.request_id]
        request.status, request.reason = "finished", e.error or e.reason

    def _prefix_queried(self, e: ev.PrefixQueried) -> None:
        self.sequences[e.seq_id].num_computed_tokens = e.num_hit_tokens
        if e.recomputation:
            self.counters.recompute_queries += e.num_query_tokens
            self.counters.recompute_hits += e.num_hit_tokens
        else:
            self.counters.prefix_cache_queries += e.num_query_tokens
            self.counters.prefix_cache_hits += e.num_hit_tokens

    def _sequence_scheduled(self, e: ev.SequenceScheduled) -> None:
        self.sequences[e.seq_id].num_computed_tokens = e.start
        self.counters.num_scheduled_tokens += e.num_new_tokens
        self.counters.num_recomputed_tokens += e.num_recomputed_tokens

    def _sequence_forked(self, e: ev.SequenceForked) -> None:
        parent = self.sequences[e.parent_seq_id]
        self.sequences[e.seq_id] = SequenceState(
            e.seq_id,
            e.request_id,
            parent.num_prompt_tokens,
            list(parent.token_ids),
            list(parent.pieces),
            parent.num_computed_tokens,
        )
        request = self.requests.get(e.request_id)
        if request is None:
            source = self.requests[parent.request_id]
            request = RequestState(e.request_id, source.status, [], source.max_tokens)
            self.requests[e.request_id] = request
        request.seq_ids.append(e.seq_id)

    def _token_sampled(self, e: ev.TokenSampled) -> None:
        sequence = self.sequences[e.seq_id]
        if e.position != sequence.num_tokens:
            raise ReplayError(
                _("token {position} follows token {num_tokens}").format(
                    position=e.position, num_tokens=sequence.num_tokens - 1
                )
            )
        sequence.token_ids.append(e.token_id)
        sequence.pieces.append(e.piece)

    def _sequence_finished(self, e: ev.SequenceFinished) -> None:
        sequence = self.sequences[e.seq_id]
        sequence.finish_reason = e.reason
        for cpu_block_id in sequence.cpu_block_table:
            self.cpu_blocks[cpu_block_id].owners.pop(e.seq_id, None)
        sequence.cpu_block_table.clear()

    def _step_completed(self, _e: ev.StepCompleted) -> None:
        """Carries times and counts only; it changes no state."""

    # -- helpers --

    def _check_no_memory_yet(self) -> None:
        if self.blocks or self.arena:
            raise ReplayError(_("a trace has one memory"))

    def _block(self, block_id: int) -> BlockState:
        if not 0 <= block_id < len(self.blocks):
            raise ReplayError(
                _("block {block_id} is not one of {num_blocks}").format(block_id=block_id, num_blocks=len(self.blocks))
            )
        return self.blocks[block_id]

    def _cpu_block(self, block_id: int) -> BlockState:
        if not 0 <= block_id < len(self.cpu_blocks):
            raise ReplayError(
                _("CPU block {block_id} is not one of {num_cpu_blocks}").format(
                    block_id=block_id, num_cpu_blocks=len(self.cpu_blocks)
                )
            )
        return self.cpu_blocks[block_id]

    def _enter(self, seq_id: str, logical_index: int, block_id: int) -> None:
        """Put the block at the end of the sequence's table: tables only grow at the end."""
        table = self.sequences[seq_id].block_table
        if logical_index != len(table):
            raise ReplayError(
                _("table entry {logical_index} follows entry {num_table}").format(
                    logical_index=logical_index, num_table=len(table) - 1
                )
            )
        table.append(block_id)
        self._block(block_id).owners[seq_id] = logical_index


def _handler_name(event_type: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in event_type)


_HANDLERS: dict[type[ev.Event], Callable[[CacheState, Any], None]] = {
    cls: getattr(CacheState, _handler_name(name)) for name, cls in ev.EVENT_TYPES.items()
}
