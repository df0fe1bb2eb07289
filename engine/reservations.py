"""How many slots a contiguous system sets aside for a request: the rules of the paper's baselines, and two plain ones.

Every rule counts positions, one a token, prompt and reply together (paper section 6.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.arrivals import Arrival
from engine.buddy import power_of_two_at_least


class ReservationRule(Protocol):
    @property
    def label(self) -> str:
        """The rule's name as the events carry it."""

    def num_slots(self, arrival: Arrival) -> int:
        """Slots set aside for the whole life of the request."""


@dataclass(frozen=True, slots=True)
class Max:
    """Orca (Max): always the longest sequence the model allows, whatever the request."""

    max_model_len: int

    @property
    def label(self) -> str:
        return f"Max ({self.max_model_len})"

    def num_slots(self, arrival: Arrival) -> int:
        return self.max_model_len


@dataclass(frozen=True, slots=True)
class Pow2:
    """Orca (Pow2): the prompt, and the reply rounded up to a power of two (a reply of 25 gets 32)."""

    label = "Pow2"

    def num_slots(self, arrival: Arrival) -> int:
        return arrival.num_prompt_tokens + power_of_two_at_least(arrival.num_output_tokens)


@dataclass(frozen=True, slots=True)
class Oracle:
    """Orca (Oracle): exactly what the request will need. No real system knows this."""

    label = "Oracle"

    def num_slots(self, arrival: Arrival) -> int:
        return arrival.num_tokens


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same number of slots for every request: the plain reservation of the lessons."""

    num_slots_each: int

    @property
    def label(self) -> str:
        return f"Fixed ({self.num_slots_each})"

    def num_slots(self, arrival: Arrival) -> int:
        return self.num_slots_each


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """The longest sequence the request itself allows: its prompt and its `max_tokens` (paper Fig. 3)."""

    label = "Own limit"

    def num_slots(self, arrival: Arrival) -> int:
        limit = arrival.num_output_tokens if arrival.max_tokens is None else arrival.max_tokens
        return arrival.num_prompt_tokens + limit
