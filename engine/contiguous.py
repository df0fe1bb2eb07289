"""The arena: KV memory as one stretch of slots, where every request holds one run for its whole life.

This is how systems before paging kept their KV cache (paper section 3.1), and what the lessons and the race hold
the paged engine against. Usable by hand, without a model and without torch:

    arena = Arena(64, Trace(), Oracle(), "first_fit")
    arena.reserve(Arrival.from_words("A", ["The", "red"], ["fox", "ran"]))   # events, or a refusal with the reason
    arena.append("A")                                                       # the next word, known and written
    arena.finish("A")

Everything that happens is written to `arena.trace`, stamped with `trace.step`, which the caller moves on.
`engine/contiguous_replay.py` drives an arena from arrivals, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.arrivals import Arrival
from engine.buddy import BuddyAllocator
from engine.events import (
    ArenaCreated,
    FinishReason,
    RegionFreed,
    RegionReserved,
    RequestAdded,
    RequestAdmitted,
    RequestFinished,
    RequestRefused,
    SequenceFinished,
    SlotsWritten,
    TokenSampled,
    plural,
)
from engine.fit import BestFit, FirstFit
from engine.reservations import ReservationRule
from engine.runs import Allocator, Run, gaps_between
from engine.state import MAX_SLOTS
from engine.trace import Trace

ALLOCATORS: dict[str, Callable[[int], Allocator]] = {
    "first_fit": FirstFit,
    "best_fit": BestFit,
    "buddy": BuddyAllocator,
}


@dataclass(slots=True)
class Resident:
    """A request that holds a run: two cursors, as everywhere (known tokens, and tokens with KV written)."""

    arrival: Arrival
    run: Run
    num_needed: int
    num_tokens: int
    num_computed_tokens: int = 0

    @property
    def has_room(self) -> bool:
        """Whether the reservation has a slot for one more token. What an allocator rounded up is never used."""
        return self.num_tokens < self.num_needed

    @property
    def is_complete(self) -> bool:
        """Whether the whole reply is known."""
        return self.num_tokens == self.arrival.num_tokens


class Arena:
    """`num_slots` slots, an allocator, a reservation rule, and the requests that hold runs."""

    def __init__(self, num_slots: int, trace: Trace, rule: ReservationRule, allocator: str = "first_fit") -> None:
        """Raises ValueError when the size is out of range or the allocator unknown."""
        if not 1 <= num_slots <= MAX_SLOTS:
            raise ValueError(f"An arena has 1 to {MAX_SLOTS} slots, not {num_slots}.")
        if allocator not in ALLOCATORS:
            raise ValueError(f"The allocator must be one of {', '.join(ALLOCATORS)}.")
        self.num_slots = num_slots
        self.trace = trace
        self.rule = rule
        self.allocator = ALLOCATORS[allocator](num_slots)
        self.residents: dict[str, Resident] = {}
        self._longest_when_empty = self._longest_run()
        self._known_ids: set[str] = set()
        trace.append(ArenaCreated(trace.step, num_slots, allocator, rule.label))

    # -- by hand --

    def reserve(self, arrival: Arrival) -> bool:
        """Admit the request now, or write RequestRefused with the reason and change nothing else."""
        reason = self.why_never(arrival) or self.why_not_now(arrival)
        if reason:
            self.refuse(arrival, reason)
            return False
        self.add(arrival)
        self.admit(arrival)
        return True

    def append(self, request_id: str, num_tokens: int = 1) -> None:
        """The next tokens of the reply, each known and then written (behind the prompt, if that is still due).

        Raises KeyError when the request holds no run, ValueError when the reply or the reservation is at its end.
        """
        self.write(request_id)
        for _ in range(num_tokens):
            self.sample(request_id)
            self.write(request_id)

    # -- the beats the scheduler uses, too --

    def why_never(self, arrival: Arrival) -> str:
        """Why this request could not be served even alone; empty when it could."""
        num_needed = self.rule.num_slots(arrival)
        size = self.allocator.size_for(num_needed)
        if arrival.request_id in self._known_ids:
            return f"there was a request named {arrival.request_id} before"
        if arrival.num_prompt_tokens > num_needed:
            return f"its prompt has {plural(arrival.num_prompt_tokens, 'token')}, the reservation {num_needed}"
        if size > self._longest_when_empty:
            return f"longest run {self._longest_when_empty} when all is free, need {size}"
        return ""

    def why_not_now(self, arrival: Arrival) -> str:
        """Why no run can be had at the moment; empty when one can.

        `need` is what the allocator must find, so with the buddy allocator it is rounded up, and `longest run` its
        longest block.
        """
        size = self.allocator.size_for(self.rule.num_slots(arrival))
        longest = self._longest_run()
        if size <= longest:
            return ""
        return f"{plural(self.num_free_slots, 'slot')} free, longest run {longest}, need {size}"

    def refuse(self, arrival: Arrival, reason: str) -> None:
        self.trace.append(RequestRefused(self.trace.step, arrival.request_id, reason))

    def add(self, arrival: Arrival) -> None:
        """The request is known. It holds nothing yet."""
        self._known_ids.add(arrival.request_id)
        max_tokens = arrival.num_output_tokens if arrival.max_tokens is None else arrival.max_tokens
        self.trace.append(
            RequestAdded(
                self.trace.step,
                arrival.request_id,
                arrival.prompt_token_ids,
                arrival.pieces,
                max_tokens,
                num_output_tokens=arrival.num_output_tokens,
            )
        )

    def admit(self, arrival: Arrival) -> None:
        """Reserve the run and start. Raises ValueError when no run can be had: ask `why_not_now` before."""
        num_needed = self.rule.num_slots(arrival)
        run = self.allocator.reserve(num_needed)
        if run is None:
            raise ValueError(f"{arrival.request_id} cannot start: {self.why_not_now(arrival)}.")
        self.residents[arrival.request_id] = Resident(arrival, run, num_needed, arrival.num_prompt_tokens)
        step = self.trace.step
        self.trace.append(RequestAdmitted(step, arrival.request_id, "waiting"))
        self.trace.append(RegionReserved(step, arrival.request_id, run.start, run.num_slots, num_needed))

    def write(self, request_id: str) -> int:
        """Write keys and values of every known token that lacks them. Returns how many there were."""
        resident = self.residents[request_id]
        start, stop = resident.num_computed_tokens, resident.num_tokens
        if start == stop:
            return 0
        slots = tuple(range(resident.run.start + start, resident.run.start + stop))
        resident.num_computed_tokens = stop
        self.trace.append(SlotsWritten(self.trace.step, request_id, start, slots))
        return stop - start

    def sample(self, request_id: str) -> None:
        """The next token of the reply becomes known; it is written by the next `write`."""
        resident = self.residents[request_id]
        if resident.is_complete:
            raise ValueError(f"{request_id} has no further token.")
        if not resident.has_room:
            raise ValueError(f"{request_id} has a token for each of its {plural(resident.num_needed, 'slot')}.")
        arrival, position = resident.arrival, resident.num_tokens
        index = position - arrival.num_prompt_tokens
        resident.num_tokens += 1
        self.trace.append(
            TokenSampled(
                self.trace.step, request_id, position, arrival.output_token_ids[index], arrival.output_pieces[index]
            )
        )

    def finish(self, request_id: str, reason: FinishReason = "stop") -> None:
        """The request ends and gives its run back. Raises KeyError when it holds none."""
        resident = self.residents.pop(request_id)
        self.allocator.free(resident.run)
        step = self.trace.step
        self.trace.append(SequenceFinished(step, request_id, reason))
        self.trace.append(RequestFinished(step, request_id, reason))
        self.trace.append(RegionFreed(step, request_id, resident.run.start, resident.run.num_slots))

    # -- what is free --

    @property
    def num_free_slots(self) -> int:
        return sum(run.num_slots for run in self.allocator.free_runs())

    def check_invariants(self) -> None:
        """Raises AssertionError naming the broken rule."""
        held = [resident.run for resident in self.residents.values()]
        free = self.allocator.free_runs()
        if gaps_between(held + free, self.num_slots) or sum(run.num_slots for run in held + free) != self.num_slots:
            raise AssertionError("Held and free runs must cover every slot exactly once.")
        if any(r.num_computed_tokens > r.num_needed for r in self.residents.values()):
            raise AssertionError("A request may write only into the slots it asked for.")

    def _longest_run(self) -> int:
        return max((run.num_slots for run in self.allocator.free_runs()), default=0)
