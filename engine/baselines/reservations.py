"""How many slots a contiguous system sets aside for a request: the rules of the paper's baselines, and two plain ones.

Every rule counts positions, one a token, prompt and reply together (paper section 6.1). None sets aside more than the
longest sequence the model allows: behind `max_model_len` tokens a request ends, so further slots could never be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.baselines.arrivals import Arrival
from engine.baselines.buddy import power_of_two_at_least


class ReservationRule(Protocol):
    """How many slots a system reserves for a request."""

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
        """`Max (2048)`."""
        return f"Max ({self.max_model_len})"

    def num_slots(self, arrival: Arrival) -> int:
        """See ReservationRule."""
        return self.max_model_len


@dataclass(frozen=True, slots=True)
class Pow2:
    """Orca (Pow2): the prompt, and the reply rounded up to a power of two (a reply of 25 gets 32)."""

    max_model_len: int
    label = "Pow2"

    def num_slots(self, arrival: Arrival) -> int:
        """See ReservationRule."""
        reply = power_of_two_at_least(arrival.num_output_tokens)
        return min(arrival.num_prompt_tokens + reply, self.max_model_len)


@dataclass(frozen=True, slots=True)
class Oracle:
    """Orca (Oracle): exactly what the request will need. No real system knows this.

    `max_model_len` is None in scenes without a model, whose requests are as long as they are.
    """

    max_model_len: int | None = None
    label = "Oracle"

    def num_slots(self, arrival: Arrival) -> int:
        """See ReservationRule."""
        return _at_most(self.max_model_len, arrival.num_tokens)


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same number of slots for every request: the plain reservation of the lessons."""

    num_slots_each: int

    @property
    def label(self) -> str:
        """`Fixed (16)`."""
        return f"Fixed ({self.num_slots_each})"

    def num_slots(self, arrival: Arrival) -> int:
        """See ReservationRule."""
        return self.num_slots_each


def _at_most(max_model_len: int | None, num_slots: int) -> int:
    return num_slots if max_model_len is None else min(num_slots, max_model_len)
