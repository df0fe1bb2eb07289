"""A scheduler for an arena: first come, first served, one token a running request a step.

    receive arrivals, then step = admit from the head of the queue -> run -> finish and free

The whole prompt is written in the step a request starts; from then on each step writes the token that the step
before made known, and makes the next one known. A reply's last token is never written, as in the paged engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import perf_counter

from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import ReservationRule
from engine.trace.events import AdmissionDeferred, SequenceScheduled, StepCompleted
from engine.trace.trace import Trace


class ContiguousScheduler:
    """Replays arrivals into an arena. `step()` until `has_unfinished_requests()` is false."""

    def __init__(self, arena: Arena, arrivals: Iterable[Arrival]) -> None:
        self.arena = arena
        self.waiting: deque[Arrival] = deque()
        self.running: list[str] = []
        self._coming = deque(sorted(arrivals, key=lambda arrival: arrival.arrival_step))
        self._last_reason = ("", "")

    def has_unfinished_requests(self) -> bool:
        """Whether a request is still to come, waiting or running."""
        return bool(self._coming or self.waiting or self.running)

    def step(self) -> None:
        """Add what arrives before this step, then run the step. Arrivals carry the number of the step before."""
        started = perf_counter()
        trace = self.arena.trace
        self._receive_arrivals(trace.step + 1)
        trace.step += 1
        self._admit()
        num_tokens = sum(self._run(request_id) for request_id in self.running)
        self._finish()
        elapsed_ms = (perf_counter() - started) * 1000
        trace.append(StepCompleted(trace.step, num_tokens, len(self.running), len(self.waiting), elapsed_ms))

    def _receive_arrivals(self, step: int) -> None:
        """Requests due by `step` join the queue; those that could never be served are refused instead."""
        while self._coming and self._coming[0].arrival_step <= step:
            arrival = self._coming.popleft()
            if reason := self.arena.rejection_reason(arrival):
                self.arena.refuse(arrival, reason)
            else:
                self.arena.add(arrival)
                self.waiting.append(arrival)

    def _admit(self) -> None:
        """Start requests in order. The first that finds no run holds up all behind it."""
        while self.waiting:
            if reason := self.arena.wait_reason(self.waiting[0]):
                self._defer(self.waiting[0].request_id, reason)
                return
            arrival = self.waiting.popleft()
            self.arena.admit(arrival)
            self.running.append(arrival.request_id)

    def _defer(self, request_id: str, reason: str) -> None:
        if self._last_reason != (request_id, reason):
            self._last_reason = (request_id, reason)
            self.arena.trace.append(AdmissionDeferred(self.arena.trace.step, request_id, reason))

    def _run(self, request_id: str) -> int:
        """Write what is known, then make one more token known. Returns the number of tokens written."""
        resident, trace = self.arena.residents[request_id], self.arena.trace
        start = resident.num_computed_tokens
        trace.append(SequenceScheduled(trace.step, request_id, start, resident.num_tokens - start))
        num_written = self.arena.write(request_id)
        if resident.has_room and not resident.is_complete:
            self.arena.sample(request_id)
        return num_written

    def _finish(self) -> None:
        """`stop`: the reply is complete. `length`: it has filled its reservation."""
        for request_id in list(self.running):
            resident = self.arena.residents[request_id]
            if resident.is_complete or not resident.has_room:
                self.running.remove(request_id)
                self.arena.finish(request_id, "stop" if resident.is_complete else "length")


def replay(arrivals: Iterable[Arrival], num_slots: int, rule: ReservationRule, allocator: str = "buddy") -> Trace:
    """The trace of serving all arrivals in an arena of `num_slots`, to the end."""
    trace = Trace(info={"source": "contiguous", "allocator": allocator, "reservation": rule.label})
    scheduler = ContiguousScheduler(Arena(num_slots, trace, rule, allocator), arrivals)
    while scheduler.has_unfinished_requests():
        scheduler.step()
    return trace
