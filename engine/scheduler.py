"""The scheduler: which tokens run in this step, and who must make room.

vLLM V1's principle: there is no prefill phase and no decode phase. Every sequence has `num_tokens` known and
`num_computed_tokens` written; a step hands out tokens to close the gap, under `max_num_batched_tokens`. Chunked
prefill, prefix hits and resumption all fall out of that.

Order of one step: running requests first, in order of arrival; then swapped and preempted ones come back, in order
of arrival; then waiting ones start. The first that cannot start holds back the rest. When a running request lacks a
block, the latest arrival gives back all its blocks.

Three rules make every accepted request finish:
- Admission accepts a request only if the pool holds it alone, all samples or beams at full length, sharing nothing
  but the full blocks of the prompt (`admission.max_blocks_needed`).
- Sequences of one group always share the full blocks of the tokens they have in common when one of them starts: it
  waits until a sibling has computed them, and takes the sibling's own blocks (`_may_start`, `_reuse_prefix`).
- A group starts or comes back only when blocks are free for all tokens that all its sequences know, so it is not
  preempted by its own start.

From them follows the bound of `max_steps_to_next_token`.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter

from engine.config import EngineConfig
from engine.i18n import counted
from engine.kv_cache.manager import KVCacheManager, PrefixHit, num_common_tokens
from engine.sequence import Sequence, SequenceGroup
from engine.trace.events import (
    AdmissionDeferred,
    Event,
    PrefixQueried,
    QueueName,
    RequestAdmitted,
    RequestPreempted,
    SequenceScheduled,
)
from engine.trace.record import record
from engine.trace.trace import Trace

_arrival = attrgetter("arrival")


@record
class ScheduledSequence:
    """Run tokens `start .. start + num_new_tokens - 1` of one sequence. `needs_logits`: its last known token runs."""

    group: SequenceGroup
    sequence: Sequence
    start: int
    num_new_tokens: int
    block_table: list[int]
    needs_logits: bool


class Scheduler:
    """Continuous batching with preemption. Queues hold SequenceGroups; all changes of memory go through `kv`."""

    def __init__(self, config: EngineConfig, kv: KVCacheManager, trace: Trace) -> None:
        self.config = config
        self.kv = kv
        self.trace = trace
        self.waiting: deque[SequenceGroup] = deque()
        self.running: list[SequenceGroup] = []
        self.swapped: deque[SequenceGroup] = deque()
        self._must_finish_first: set[str] = set()
        """Requests that were swapped out and are not done: until they are, nobody new is admitted (paper 4.5)."""
        self._batch: list[ScheduledSequence] = []
        self._budget = 0

    def add(self, group: SequenceGroup) -> None:
        """Append a request to the waiting queue."""
        self.waiting.append(group)

    def has_unfinished(self) -> bool:
        """Whether any request is waiting, running or swapped out."""
        return bool(self.waiting or self.running or self.swapped)

    def max_steps_to_next_token(self) -> int:
        """A bound: within so many steps some request gets a token or ends, if no caller aborts or preempts meanwhile.

        The oldest running request is scheduled first, with the whole budget, and is never preempted: the latest
        arrival is, and alone it fits. It runs at least one chunk (`max_num_batched_tokens`, or less by
        `long_prefill_token_threshold`) of one sequence in each step, or completes what that sequence knows. So samples
        get a token after at most the sum of their chunks. Beams need all their tokens but the last first, and a
        step each may pass in which one only takes the blocks of a sibling; then one step for all last tokens.

        Meanwhile an older request may start and be served first instead. That happens at most twice: those that return
        do so in order of arrival, and so do those that start; what is preempted after that is younger. When nothing
        runs, the next in turn starts at once. So the bound is three times the largest count of any request here.
        """
        budget = self.config.max_num_batched_tokens
        chunk = min(budget, self.config.long_prefill_token_threshold or budget)
        groups = [*self.running, *self.swapped, *self.waiting]
        return 3 * max((_max_steps_when_served_first(group, chunk) for group in groups), default=0)

    def schedule(self) -> list[ScheduledSequence]:
        """The batch of this step. Every entry has at least one token, and its slots are allocated."""
        self._batch = []
        self._budget = self.config.max_num_batched_tokens
        num_preemptions = self._schedule_running()
        if num_preemptions == 0:
            while self._budget > 0 and self._start_next():
                pass
        self._log_scheduled()
        return self._batch

    def preempt(self, group: SequenceGroup, reason: str) -> None:
        """Free all blocks of a running request: swapped out when the swap space holds them, else for recomputation."""
        self.running.remove(group)
        self._budget += sum(item.num_new_tokens for item in self._batch if item.group is group)
        self._batch = [item for item in self._batch if item.group is not group]
        live = group.live_sequences
        if self.config.preemption_mode == "swap" and self.kv.can_swap_out(live):
            self._preempt_by_swap(group, live, reason)
        else:
            if self.config.preemption_mode == "swap":
                reason = f"{reason} Swap space is too small for it."
            self._preempt_by_recompute(group, live, reason)

    def finish(self, group: SequenceGroup) -> None:
        """Forget a request whose sequences are all finished and freed."""
        for queue in (self.running, self.waiting, self.swapped):
            if group in queue:
                queue.remove(group)
        self._must_finish_first.discard(group.request_id)
        group.status = "finished"

    # -- running requests --

    def _schedule_running(self) -> int:
        """Give every running request its tokens, oldest first. Returns how many requests lost their blocks."""
        before = len(self.running)
        for group in sorted(self.running, key=_arrival):
            if group.status == "running" and self._budget > 0:  # else one before it took its blocks
                self._schedule_group(group)
        return before - len(self.running)

    def _schedule_group(self, group: SequenceGroup, hit: PrefixHit | None = None) -> None:
        """`hit`: what the prefix cache holds of the first sequence, when that is known already."""
        live = group.live_sequences
        beams_together = len(live) == 1 or self._beams_can_choose(live)
        for seq in live:
            num_new_tokens = self._num_tokens_to_run(group, seq, beams_together)
            if num_new_tokens == 0 or (seq.num_computed_tokens == 0 and not self._may_start(group, seq)):
                continue
            if seq.num_computed_tokens == 0:
                self._reuse_prefix(group, seq, hit if seq is live[0] else None)
                num_new_tokens = self._num_tokens_to_run(group, seq, beams_together)
                if num_new_tokens == 0:
                    continue
            if not self._allocate_or_preempt(group, seq, num_new_tokens):
                return
            self._schedule_tokens(group, seq, num_new_tokens)

    def _num_tokens_to_run(self, group: SequenceGroup, seq: Sequence, beams_together: bool) -> int:
        missing = len(seq.token_ids) - seq.num_computed_tokens
        if not beams_together and group.params.uses_beam_search:
            missing -= 1
        if missing <= 1:  # a decode step, to which no threshold applies
            return 1 if missing == 1 and self._budget > 0 else 0
        threshold = self.config.long_prefill_token_threshold or self._budget
        return max(0, min(missing, self._budget, threshold))

    def _beams_can_choose(self, live: list[Sequence]) -> bool:
        """Beams are compared with each other, so their last tokens run in one step or not at all."""
        return self._budget >= len(live) and all(seq.num_computed_tokens >= seq.num_tokens - 1 for seq in live)

    def _allocate_or_preempt(self, group: SequenceGroup, seq: Sequence, num_new_tokens: int) -> bool:
        """Allocate slots, preempting the latest arrival while blocks are short. False when that was this request."""
        while not self.kv.allocate_slots(seq, num_new_tokens):
            victim = max(self.running, key=_arrival)
            need = self.kv.num_new_blocks(seq, num_new_tokens)
            free = self.kv.pool.num_free_blocks
            self.preempt(
                victim,
                counted(
                    "{seq_id} needs {n} block, {free} are free, and {victim} arrived last.",
                    "{seq_id} needs {n} blocks, {free} are free, and {victim} arrived last.",
                    need,
                    seq_id=seq.seq_id,
                    free=free,
                    victim=victim.request_id,
                ),
            )
            if victim is group:
                return False
        return True

    def _schedule_tokens(self, group: SequenceGroup, seq: Sequence, num_new_tokens: int) -> None:
        start = seq.num_computed_tokens
        table = self.kv.block_tables[seq.seq_id]
        is_last = start + num_new_tokens == len(seq.token_ids)
        self._batch.append(ScheduledSequence(group, seq, start, num_new_tokens, table, is_last))
        self._budget -= num_new_tokens

    def _log_scheduled(self) -> None:
        step = self.trace.step
        events: list[Event] = []
        for item in self._batch:
            seq, start, count = item.sequence, item.start, item.num_new_tokens
            already_computed = seq.num_ever_computed - start
            again = 0 if already_computed <= 0 else min(count, already_computed)
            events.append(SequenceScheduled(step, seq.seq_id, start, count, again))
        self.trace.append_all(events)

    # -- starting, or starting again --

    def _may_start(self, group: SequenceGroup, seq: Sequence) -> bool:
        """A sample waits for a sibling that is computing what they have in common; the others never wait."""
        sibling = self._computed_sibling(group, seq)
        if sibling is None:
            return True
        return sibling.num_computed_tokens >= num_common_tokens(sibling, seq)

    def _reuse_prefix(self, group: SequenceGroup, seq: Sequence, hit: PrefixHit | None) -> None:
        """Start from what is already in memory: a sibling's blocks (the paper) or the prefix cache (vLLM V1).

        A sibling's blocks that cannot be found in the cache, as after `clear_prefix_cache`, are shared the paper's
        way: admission counts on the sharing.
        """
        sibling = self._computed_sibling(group, seq)
        if sibling is None:
            self._allocate_prefix_hit(seq, self.kv.find_prefix(seq) if hit is None else hit)
            return
        num_common = num_common_tokens(sibling, seq)
        by_content = self.config.parallel_sampling == "prefix_cache"
        hit = self.kv.find_prefix(seq, sibling) if by_content else []
        if by_content and len(hit) >= num_common // self.kv.block_size:
            self._allocate_prefix_hit(seq, hit)
        else:
            self.kv.share_full_blocks(sibling, seq, num_common)

    def _allocate_prefix_hit(self, seq: Sequence, hit: PrefixHit) -> None:
        if self.config.enable_prefix_caching:
            num_hit_tokens = self.kv.allocate_cached_blocks(seq, hit)
            recomputation = seq.num_ever_computed > 0
            self.trace.append(PrefixQueried(self.trace.step, seq.seq_id, seq.num_tokens, num_hit_tokens, recomputation))

    def _computed_sibling(self, group: SequenceGroup, seq: Sequence) -> Sequence | None:
        """The started sibling with the most tokens in common, the earliest of equals."""
        started = [s for s in group.live_sequences if s is not seq and s.seq_id in self.kv.block_tables]
        return max(started, key=lambda s: num_common_tokens(s, seq), default=None)

    # -- queues --

    def _start_next(self) -> bool:
        """Start the request whose turn it is. False when there is none or it cannot start; the reason is logged."""
        swapped = self.swapped[0] if self.swapped else None
        waiting = self.waiting[0] if self.waiting else None
        if swapped and (not waiting or waiting.status == "waiting" or swapped.arrival < waiting.arrival):
            group, started = swapped, self._swap_in(swapped)
        elif waiting:
            group, started = waiting, self._admit(waiting)
        else:
            return False
        return started and group in self.running

    def _swap_in(self, group: SequenceGroup) -> bool:
        """Bring a swapped request back if there are blocks for it and `max_num_seqs` allows it."""
        live = group.live_sequences
        if self.kv.num_blocks_to_swap_in(live) > self.kv.pool.num_free_blocks or not self._fits_max_num_seqs(group):
            if self.waiting:
                self._defer(self.waiting[0], self._swapped_finish_first())
            return False
        self.swapped.popleft()
        self._start_running(group, "swapped")
        self.kv.swap_in(live)
        self._schedule_group(group)
        return True

    def _admit(self, group: SequenceGroup) -> bool:
        """Start a waiting or preempted request, or log the reason why it has to wait."""
        hit: PrefixHit = []
        reason = self._reason_to_wait_for_others(group)
        if not reason:
            hit = self.kv.find_prefix(group.live_sequences[0])
            reason = self._reason_to_wait_for_blocks(group, hit)
        if reason:
            self._defer(group, reason)
            return False
        self.waiting.popleft()
        self._start_running(group, "preempted" if group.status == "preempted" else "waiting")
        self._schedule_group(group, hit)
        return True

    def _reason_to_wait_for_others(self, group: SequenceGroup) -> str:
        if self._must_finish_first and group.status == "waiting":
            return self._swapped_finish_first()
        if not self._fits_max_num_seqs(group):
            allowed = counted("{n} sequence", "{n} sequences", self.config.max_num_seqs)
            return f"max_num_seqs allows {allowed} at once, and the running ones leave too few."
        return ""

    def _swapped_finish_first(self) -> str:
        return f"swapped requests finish first ({', '.join(sorted(self._must_finish_first))})."

    def _reason_to_wait_for_blocks(self, group: SequenceGroup, hit: PrefixHit) -> str:
        need = self.kv.num_blocks_to_start(group.live_sequences, hit) + self._num_blocks_of_first_forks(group)
        free = self.kv.pool.num_free_blocks
        return (
            counted("it needs {n} free block, {free} free.", "it needs {n} free blocks, {free} free.", need, free=free)
            if need > free
            else ""
        )

    def _num_blocks_of_first_forks(self, group: SequenceGroup) -> int:
        """Blocks for the samples or beams that fork at the first token: each writes a block of its own from there."""
        params, first = group.params, group.sequences[0]
        forks_live_on = min(params.max_tokens, self.config.max_model_len - first.num_prompt_tokens) > 1
        return params.num_sequences - len(group.sequences) if forks_live_on and not group.has_sampled else 0

    def _fits_max_num_seqs(self, group: SequenceGroup) -> bool:
        return (
            sum(g.max_num_running_seqs for g in self.running) + group.max_num_running_seqs <= self.config.max_num_seqs
        )

    def _defer(self, group: SequenceGroup, reason: str) -> None:
        if reason != group.deferred_reason:
            group.deferred_reason = reason
            self.trace.append(AdmissionDeferred(self.trace.step, group.request_id, reason))

    def _start_running(self, group: SequenceGroup, queue: QueueName) -> None:
        group.status, group.deferred_reason = "running", ""
        self.running.append(group)
        self.trace.append(RequestAdmitted(self.trace.step, group.request_id, queue))

    # -- preemption (paper section 4.5) --

    def _preempt_by_recompute(self, group: SequenceGroup, live: list[Sequence], reason: str) -> None:
        for seq in reversed(live):
            self.kv.free(seq)
            seq.num_computed_tokens = 0
        group.status = "preempted"
        _insert_in_order_of_arrival(self.waiting, group)
        self.trace.append(RequestPreempted(self.trace.step, group.request_id, "recompute", reason))

    def _preempt_by_swap(self, group: SequenceGroup, live: list[Sequence], reason: str) -> None:
        for seq in live:
            self.kv.release_unwritten(seq)
        self.kv.swap_out(live)
        group.status = "swapped"
        _insert_in_order_of_arrival(self.swapped, group)
        self._must_finish_first.add(group.request_id)
        self.trace.append(RequestPreempted(self.trace.step, group.request_id, "swap", reason))


def _max_steps_when_served_first(group: SequenceGroup, chunk: int) -> int:
    live = group.live_sequences
    num_chunks = sum(-(-seq.num_tokens // chunk) for seq in live)
    return num_chunks + len(live) + 1 if group.params.uses_beam_search else num_chunks


def _insert_in_order_of_arrival(queue: deque[SequenceGroup], group: SequenceGroup) -> None:
    """Among those that lost their blocks too; they are in front of all that have not started."""
    queue.insert(sum(g.status == group.status and g.arrival < group.arrival for g in queue), group)
