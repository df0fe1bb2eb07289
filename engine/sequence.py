"""Sequence and SequenceGroup: the units the scheduler moves.

A sequence is one line of tokens with one block table. A group is one request: all its samples or beams.
Groups are admitted, preempted and swapped whole (paper section 4.5).

    num_computed_tokens      num_tokens
            v                    v
    |x|x|x|x|.|.|.|.|.|.|.|.|.|.|      x: keys and values written    .: known, not yet computed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.events import FinishReason
from engine.sampling_params import SamplingParams

GroupStatus = Literal["waiting", "running", "preempted", "swapped", "finished"]


@dataclass(eq=False)
class Sequence:
    """One line of tokens. `index` tells the samples of a request apart and picks their random numbers."""

    seq_id: str
    index: int
    token_ids: list[int]
    num_prompt_tokens: int
    num_computed_tokens: int = 0
    num_ever_computed: int = 0
    """High-water mark of computed tokens: what is computed below it is recomputation."""
    cumulative_logprob: float = 0.0
    finish_reason: FinishReason | None = None

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    def fork(self, seq_id: str, index: int) -> Sequence:
        """A new sequence that knows the same tokens. The caller shares the blocks."""
        child = Sequence(seq_id, index, list(self.token_ids), self.num_prompt_tokens, self.num_computed_tokens)
        child.num_ever_computed = self.num_ever_computed
        child.cumulative_logprob = self.cumulative_logprob
        return child


@dataclass(eq=False)
class SequenceGroup:
    """One request with its sequences, in order of creation. `arrival` orders requests: lower came first."""

    request_id: str
    arrival: int
    params: SamplingParams
    seed: int
    sequences: list[Sequence]
    status: GroupStatus = "waiting"
    deferred_reason: str = ""
    next_index: int = field(default=1)
    error: str = ""
    """Why it ended before its time, in one sentence."""

    @property
    def live_sequences(self) -> list[Sequence]:
        return [s for s in self.sequences if not s.is_finished]

    @property
    def is_finished(self) -> bool:
        return not self.live_sequences

    @property
    def num_seats(self) -> int:
        """Sequences to count against max_num_seqs: what it may grow to before it has sampled, what lives after."""
        live = self.live_sequences
        has_sampled = any(s.num_tokens > s.num_prompt_tokens for s in self.sequences)
        if self.params.uses_beam_search or not has_sampled:
            return self.params.num_sequences
        return len(live)

    def new_sequence_id(self) -> tuple[str, int]:
        """`A#1`, `A#2`, ...: id and index of the next sequence of this request."""
        index = self.next_index
        self.next_index += 1
        return sequence_id(self.request_id, index), index


def sequence_id(request_id: str, index: int) -> str:
    """The first sequence carries the request's own name; the others add their number."""
    return request_id if index == 0 else f"{request_id}#{index}"
