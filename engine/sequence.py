"""Sequence and SequenceGroup: the units the scheduler moves.

A sequence is one line of tokens with one block table. A group is one request: all its samples or beams.
Groups are admitted, preempted and swapped whole (paper section 4.5).

    num_computed_tokens      num_tokens
            v                    v
    |x|x|x|x|.|.|.|.|.|.|.|.|.|.|      x: keys and values written    .: known, not yet computed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from engine.sampling_params import SamplingParams
from engine.trace.events import FinishReason

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
        """Tokens known so far, prompt and output."""
        return len(self.token_ids)

    @cached_property
    def prompt_token_ids(self) -> tuple[int, ...]:
        """The prompt, which never changes: kept, as every step's output names it."""
        return tuple(self.token_ids[: self.num_prompt_tokens])

    @property
    def output_token_ids(self) -> list[int]:
        """The tokens generated so far."""
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def is_finished(self) -> bool:
        """Whether the sequence has a finish reason."""
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
        """The sequences that have not finished."""
        return [s for s in self.sequences if s.finish_reason is None]

    @property
    def is_finished(self) -> bool:
        """Whether every sequence has finished."""
        return None not in [seq.finish_reason for seq in self.sequences]

    @property
    def has_sampled(self) -> bool:
        """Whether any of its sequences has a token of its own."""
        return any(s.num_tokens > s.num_prompt_tokens for s in self.sequences)

    @property
    def max_num_running_seqs(self) -> int:
        """Sequences to count against max_num_seqs: what it may grow to before it has sampled, what lives after."""
        if self.params.uses_beam_search or not self.has_sampled:
            return self.params.num_sequences
        return len(self.live_sequences)

    def new_sequence_id(self) -> tuple[str, int]:
        """`A#1`, `A#2`, ...: id and index of the next sequence of this request."""
        index = self.next_index
        self.next_index += 1
        return sequence_id(self.request_id, index), index


def sequence_id(request_id: str, index: int) -> str:
    """The first sequence carries the request's own name; the others add their number."""
    return request_id if index == 0 else f"{request_id}#{index}"
