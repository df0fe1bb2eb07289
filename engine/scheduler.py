"""The scheduler: which tokens run in this step, and who must make room.

vLLM V1's principle: there is no prefill phase and no decode phase. Every sequence has `num_tokens` known and
`num_computed_tokens` written; a step hands out tokens to close the gap, under `max_num_batched_tokens`. Chunked
prefill, prefix hits and resumption all fall out of that.

Order of one step: running requests first, in order of arrival; then swapped ones come back; then preempted and
waiting ones start. When a running request lacks a block, the latest arrival gives back all its blocks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from engine.config import EngineConfig
from engine.events import (
    AdmissionDeferred,
    PrefixQueried,
    QueueName,
    RequestAdmitted,
    RequestPreempted,
    SequenceScheduled,
    plural,
)
from engine.kv_cache import KVCacheManager, PrefixHit
from engine.sequence import Sequence, SequenceGroup
from engine.trace import Trace


@dataclass(frozen=True, slots=True)
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
        self.waiting.append(group)

    def has_unfinished(self) -> bool:
        return bool(self.waiting or self.running or self.swapped)

    def schedule(self) -> list[ScheduledSequence]:
        """Hand out this step's tokens. Every entry has at least one token, and its slots are allocated."""
        self._batch = []
        self._budget = self.config.max_num_batched_tokens
        num_preemptions = self._schedule_running()
        if num_preemptions == 0:
            self._swap_in()
            self._admit_waiting()
        for item in self._batch:
            self._announce(item)
        return self._batch

    def preempt(self, group: SequenceGroup, reason: str) -> None:
        """Take all blocks of a running request away: to swap space when it fits there, else to compute again."""
        self.running.remove(group)
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
        for group in sorted(self.running, key=lambda g: g.arrival):
            if group in self.running and self._budget > 0:
                self._schedule_group(group)
        return before - len(self.running)

    def _schedule_group(self, group: SequenceGroup, hit: PrefixHit | None = None) -> None:
        """`hit`: what the prefix cache holds of the first sequence, when that is known already."""
        beams_together = self._beams_can_choose(group)
        for seq in group.live_sequences:
            num_new_tokens = self._num_tokens_to_run(group, seq, beams_together)
            if num_new_tokens == 0 or (seq.num_computed_tokens == 0 and not self._may_start(group, seq)):
                continue
            if seq.num_computed_tokens == 0:
                self._reuse_prefix(group, seq, hit if seq is group.live_sequences[0] else None)
                num_new_tokens = self._num_tokens_to_run(group, seq, beams_together)
                if num_new_tokens == 0:
                    continue
            if not self._make_room(group, seq, num_new_tokens):
                return
            self._take(group, seq, num_new_tokens)

    def _num_tokens_to_run(self, group: SequenceGroup, seq: Sequence, beams_together: bool) -> int:
        known = seq.num_tokens
        if group.params.uses_beam_search and not beams_together:
            known -= 1
        threshold = self.config.long_prefill_token_threshold or self._budget
        return max(0, min(known - seq.num_computed_tokens, self._budget, threshold))

    def _beams_can_choose(self, group: SequenceGroup) -> bool:
        """Beams are compared with each other, so their last tokens run in one step or not at all."""
        live = group.live_sequences
        only_last_missing = all(seq.num_computed_tokens >= seq.num_tokens - 1 for seq in live)
        return len(live) == 1 or (only_last_missing and self._budget >= len(live))

    def _make_room(self, group: SequenceGroup, seq: Sequence, num_new_tokens: int) -> bool:
        """Allocate, preempting the latest arrivals while blocks are short. False when this request itself had to go."""
        while not self.kv.allocate_slots(seq, num_new_tokens):
            victim = max(self.running, key=lambda g: g.arrival)
            need = self.kv.num_new_blocks(seq, num_new_tokens)
            free = self.kv.pool.num_free_blocks
            self.preempt(victim, f"{seq.seq_id} needs {plural(need, 'block')}, {free} free, and it arrived last.")
            if victim is group:
                return False
        return True

    def _take(self, group: SequenceGroup, seq: Sequence, num_new_tokens: int) -> None:
        start = seq.num_computed_tokens
        table = self.kv.block_tables[seq.seq_id]
        is_last = start + num_new_tokens == seq.num_tokens
        self._batch.append(ScheduledSequence(group, seq, start, num_new_tokens, table, is_last))
        self._budget -= num_new_tokens

    def _announce(self, item: ScheduledSequence) -> None:
        end = item.start + item.num_new_tokens
        again = max(0, min(end, item.sequence.num_ever_computed) - item.start)
        self.trace.append(
            SequenceScheduled(self.trace.step, item.sequence.seq_id, item.start, item.num_new_tokens, again)
        )

    # -- starting, or starting again --

    def _may_start(self, group: SequenceGroup, seq: Sequence) -> bool:
        """A sample waits for a sibling that is computing what they have in common; the others never wait."""
        sibling = self._computed_sibling(group, seq)
        if sibling is None:
            return True
        return sibling.num_computed_tokens >= _num_common_tokens(sibling, seq)

    def _reuse_prefix(self, group: SequenceGroup, seq: Sequence, hit: PrefixHit | None) -> None:
        """Start from what is already in memory: a sibling's blocks (the paper) or the prefix cache (vLLM V1)."""
        sibling = self._computed_sibling(group, seq) if self.config.parallel_sampling == "fork" else None
        if sibling is not None:
            self.kv.share_full_blocks(sibling, seq, _num_common_tokens(sibling, seq))
        else:
            self._take_prefix_hit(seq, self.kv.find_prefix(seq) if hit is None else hit)

    def _take_prefix_hit(self, seq: Sequence, hit: PrefixHit) -> None:
        if self.config.enable_prefix_caching:
            num_hit_tokens = self.kv.take_prefix(seq, hit)
            recomputation = seq.num_ever_computed > 0
            self.trace.append(PrefixQueried(self.trace.step, seq.seq_id, seq.num_tokens, num_hit_tokens, recomputation))

    def _computed_sibling(self, group: SequenceGroup, seq: Sequence) -> Sequence | None:
        """The started sibling with the most tokens in common, the earliest of equals."""
        started = [s for s in group.live_sequences if s is not seq and s.seq_id in self.kv.block_tables]
        return max(started, key=lambda s: _num_common_tokens(s, seq), default=None)

    # -- queues --

    def _swap_in(self) -> None:
        """Bring swapped requests back, oldest first, while blocks and seats last."""
        while self.swapped:
            group = self.swapped[0]
            live = group.live_sequences
            if self.kv.num_blocks_to_swap_in(live) > self.kv.pool.num_free_blocks or not self._has_seats(group):
                return
            self.swapped.popleft()
            self._start_running(group, "swapped")
            self.kv.swap_in(live)
            self._schedule_group(group)
            if group not in self.running:
                return

    def _admit_waiting(self) -> None:
        """Start waiting requests in order; the first that cannot start holds back the rest, and says why."""
        while self.waiting and self._budget > 0:
            group = self.waiting[0]
            hit: PrefixHit = []
            reason = self._reason_to_wait_for_others(group)
            if not reason:
                hit = self.kv.find_prefix(group.live_sequences[0])
                reason = self._reason_to_wait_for_blocks(group, hit)
            if reason:
                self._defer(group, reason)
                return
            self.waiting.popleft()
            self._start_running(group, "preempted" if group.status == "preempted" else "waiting")
            self._schedule_group(group, hit)
            if group not in self.running:
                return

    def _reason_to_wait_for_others(self, group: SequenceGroup) -> str:
        if self._must_finish_first and group.status == "waiting":
            first = ", ".join(sorted(self._must_finish_first))
            return f"swapped requests finish first ({first})."
        if not self._has_seats(group):
            return f"all {self.config.max_num_seqs} seats (max_num_seqs) are taken or too few are left."
        return ""

    def _reason_to_wait_for_blocks(self, group: SequenceGroup, hit: PrefixHit) -> str:
        need = self.kv.num_blocks_to_start(group.live_sequences[0], hit)
        free = self.kv.pool.num_free_blocks
        return f"it needs {plural(need, 'free block')}, {free} free." if need > free else ""

    def _has_seats(self, group: SequenceGroup) -> bool:
        return sum(g.num_seats for g in self.running) + group.num_seats <= self.config.max_num_seqs

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
        self.waiting.appendleft(group)
        self.trace.append(RequestPreempted(self.trace.step, group.request_id, "recompute", reason))

    def _preempt_by_swap(self, group: SequenceGroup, live: list[Sequence], reason: str) -> None:
        for seq in live:
            self.kv.release_unwritten(seq)
        self.kv.swap_out(live)
        group.status = "swapped"
        self.swapped.appendleft(group)
        self._must_finish_first.add(group.request_id)
        self.trace.append(RequestPreempted(self.trace.step, group.request_id, "swap", reason))


def _num_common_tokens(one: Sequence, other: Sequence) -> int:
    """Leading tokens that both know, leaving at least one of `other`'s to compute."""
    limit = min(one.num_tokens, other.num_tokens - 1)
    return next((i for i in range(limit) if one.token_ids[i] != other.token_ids[i]), limit)
