"""The run that was and the branch that was taken from it, in figures that can be set side by side."""

from __future__ import annotations

from dataclasses import dataclass

from engine.lab.scratch import first_difference
from engine.lab.timeline import states
from engine.state import Counters
from engine.trace import Trace
from engine.usage import Usage, usage_of


@dataclass(frozen=True, slots=True)
class Future:
    """One run from `first_step` on: `usage[i]` is after step `first_step + i`. `counters`: totals at its end."""

    first_step: int
    usage: tuple[Usage, ...]
    counters: Counters

    @property
    def last_step(self) -> int:
        return self.first_step + len(self.usage) - 1

    @property
    def peak_held_slots(self) -> int:
        """Slots held by used blocks after the fullest step."""
        return max(usage.num_held_slots for usage in self.usage)


@dataclass(frozen=True, slots=True)
class SequenceInBoth:
    """`num_common_tokens`: how far both runs go. `parts_at`: the first of these that differs, None when none does."""

    seq_id: str
    num_common_tokens: int
    parts_at: int | None


def future_of(trace: Trace, first_step: int) -> Future:
    """Raises IndexError for a step that the trace does not have."""
    if not 0 <= first_step <= trace.num_steps:
        raise IndexError(f"Step {first_step} is outside this trace, which has steps 0 to {trace.num_steps}.")
    usage = tuple(usage_of(state) for step, state in enumerate(states(trace)) if step >= first_step)
    return Future(first_step, usage, trace.at(trace.num_steps).counters)


def sequences_in_both(one: Trace, other: Trace) -> tuple[SequenceInBoth, ...]:
    """Every sequence that both runs have, held against itself as far as both go."""
    ours, theirs = one.at(one.num_steps).sequences, other.at(other.num_steps).sequences
    rows = []
    for seq_id in [seq_id for seq_id in ours if seq_id in theirs]:
        a, b = ours[seq_id].token_ids, theirs[seq_id].token_ids
        common = min(len(a), len(b))
        rows.append(SequenceInBoth(seq_id, common, first_difference(a[:common], b[:common])))
    return tuple(rows)
