"""The arena: KV memory as one contiguous region of slots, where every request holds one extent for its whole life.

This is how systems before paging kept their KV cache (paper section 3.1), and what the lessons and the race hold
the paged engine against. Usable by hand, without a model and without torch:

    arena = Arena(64, Trace(), Oracle(), "first_fit")
    arena.reserve(Arrival.from_words("A", ["The", "red"], ["fox", "ran"]))   # events, or a refusal with the reason
    arena.append("A")                                                       # the next word, known and written
    arena.finish("A")

Everything that happens is written to `arena.trace`, stamped with `trace.step`, which the caller moves on.
`engine/baselines/scheduler.py` drives an arena from arrivals, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.baselines.arrivals import Arrival
from engine.baselines.buddy import BuddyAllocator
from engine.baselines.extent import Allocator, Extent, gaps_between
from engine.baselines.free_list import BestFit, FirstFit
from engine.baselines.reservations import ReservationRule
from engine.i18n import _, counted
from engine.trace.events import (
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
)
from engine.trace.state import MAX_SLOTS
from engine.trace.trace import Trace

ALLOCATORS: dict[str, Callable[[int], Allocator]] = {
    "first_fit": FirstFit,
    "best_fit": BestFit,
    "buddy": BuddyAllocator,
}


@dataclass(slots=True)
class ReservedRequest:
    """A request that holds an extent: two cursors, as everywhere (known tokens, and tokens with KV written)."""

    arrival: Arrival
    extent: Extent
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
    """`num_slots` slots, an allocator, a reservation rule, and the requests that hold extents."""

    def __init__(self, num_slots: int, trace: Trace, rule: ReservationRule, allocator: str = "first_fit") -> None:
        """Raises ValueError when the size is out of range or the allocator unknown."""
        if not 1 <= num_slots <= MAX_SLOTS:
            raise ValueError(
                _("An arena has 1 to {max_slots} slots, not {num_slots}.").format(
                    max_slots=MAX_SLOTS, num_slots=num_slots
                )
            )
        if allocator not in ALLOCATORS:
            raise ValueError(_("The allocator must be one of {names}.").format(names=", ".join(ALLOCATORS)))
        self.num_slots = num_slots
        self.trace = trace
        self.rule = rule
        self.allocator = ALLOCATORS[allocator](num_slots)
        self.residents: dict[str, ReservedRequest] = {}
        self._longest_when_empty = self._longest_extent()
        self._known_ids: set[str] = set()
        trace.append(ArenaCreated(trace.step, num_slots, allocator, rule.label))

    # -- by hand --

    def reserve(self, arrival: Arrival) -> bool:
        """Admit the request now, or write RequestRefused with the reason and change nothing else."""
        reason = self.rejection_reason(arrival) or self.wait_reason(arrival)
        if reason:
            self.refuse(arrival, reason)
            return False
        self.add(arrival)
        self.admit(arrival)
        return True

    def append(self, request_id: str, num_tokens: int = 1) -> None:
        """The next tokens of the reply, each known and then written (behind the prompt, if that is still due).

        Raises KeyError when the request holds no extent, ValueError when the reply or the reservation is at its end.
        """
        self.write(request_id)
        for _index in range(num_tokens):
            self.sample(request_id)
            self.write(request_id)

    # -- the single steps, which the scheduler uses, too --

    def rejection_reason(self, arrival: Arrival) -> str:
        """Why this request could not be served even alone; empty when it could."""
        num_needed = self.rule.num_slots(arrival)
        size = self.allocator.size_for(num_needed)
        if arrival.request_id in self._known_ids:
            return f"there was a request named {arrival.request_id} before"
        if arrival.num_prompt_tokens > num_needed:
            return counted(
                "its prompt has {n} token, the reservation {num_needed}",
                "its prompt has {n} tokens, the reservation {num_needed}",
                arrival.num_prompt_tokens,
                num_needed=num_needed,
            )
        if size > self._longest_when_empty:
            return f"longest gap {self._longest_when_empty} when all is free, need {size}"
        return ""

    def wait_reason(self, arrival: Arrival) -> str:
        """Why no extent can be had at the moment; empty when one can.

        `need` is what the allocator must find, so with the buddy allocator it is rounded up, and `longest gap` its
        longest block.
        """
        size = self.allocator.size_for(self.rule.num_slots(arrival))
        longest = self._longest_extent()
        if size <= longest:
            return ""
        return counted(
            "{n} slot free, longest gap {longest}, need {size}",
            "{n} slots free, longest gap {longest}, need {size}",
            self.num_free_slots,
            longest=longest,
            size=size,
        )

    def refuse(self, arrival: Arrival, reason: str) -> None:
        """Write RequestRefused with the reason; nothing else changes."""
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
        """Reserve the extent and start. Raises ValueError when no extent can be had: ask `wait_reason` before."""
        num_needed = self.rule.num_slots(arrival)
        extent = self.allocator.reserve(num_needed)
        if extent is None:
            raise ValueError(
                _("{request_id} cannot start: {wait_reason}.").format(
                    request_id=arrival.request_id, wait_reason=self.wait_reason(arrival)
                )
            )
        self.residents[arrival.request_id] = ReservedRequest(arrival, extent, num_needed, arrival.num_prompt_tokens)
        step = self.trace.step
        self.trace.append(RequestAdmitted(step, arrival.request_id, "waiting"))
        self.trace.append(RegionReserved(step, arrival.request_id, extent.start, extent.num_slots, num_needed))

    def write(self, request_id: str) -> int:
        """Write keys and values of every known token that lacks them. Returns how many there were."""
        resident = self.residents[request_id]
        start, stop = resident.num_computed_tokens, resident.num_tokens
        if start == stop:
            return 0
        slots = tuple(range(resident.extent.start + start, resident.extent.start + stop))
        resident.num_computed_tokens = stop
        self.trace.append(SlotsWritten(self.trace.step, request_id, start, slots))
        return stop - start

    def sample(self, request_id: str) -> None:
        """The next token of the reply becomes known; it is written by the next `write`."""
        resident = self.residents[request_id]
        if resident.is_complete:
            raise ValueError(_("{request_id} has no more tokens.").format(request_id=request_id))
        if not resident.has_room:
            raise ValueError(
                counted(
                    "{request_id} has filled its {n} slot; there is no room for another token.",
                    "{request_id} has filled its {n} slots; there is no room for another token.",
                    resident.num_needed,
                    request_id=request_id,
                )
            )
        arrival, position = resident.arrival, resident.num_tokens
        index = position - arrival.num_prompt_tokens
        resident.num_tokens += 1
        self.trace.append(
            TokenSampled(
                self.trace.step, request_id, position, arrival.output_token_ids[index], arrival.output_pieces[index]
            )
        )

    def finish(self, request_id: str, reason: FinishReason = "stop") -> None:
        """The request ends and gives its extent back. Raises KeyError when it holds none."""
        resident = self.residents.pop(request_id)
        self.allocator.free(resident.extent)
        step = self.trace.step
        self.trace.append(SequenceFinished(step, request_id, reason))
        self.trace.append(RequestFinished(step, request_id, reason))
        self.trace.append(RegionFreed(step, request_id, resident.extent.start, resident.extent.num_slots))

    # -- what is free --

    @property
    def num_free_slots(self) -> int:
        """Slots that no request has reserved."""
        return sum(extent.num_slots for extent in self.allocator.free_extents())

    def check_invariants(self) -> None:
        """Raises AssertionError naming the broken rule."""
        held = [resident.extent for resident in self.residents.values()]
        free = self.allocator.free_extents()
        if (
            gaps_between(held + free, self.num_slots)
            or sum(extent.num_slots for extent in held + free) != self.num_slots
        ):
            raise AssertionError("Held and free runs must cover every slot exactly once.")
        if any(r.num_computed_tokens > r.num_needed for r in self.residents.values()):
            raise AssertionError("A request may write only into the slots it asked for.")

    def _longest_extent(self) -> int:
        return max((extent.num_slots for extent in self.allocator.free_extents()), default=0)
