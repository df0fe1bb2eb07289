"""How long a step takes on this machine: measured first, stored with the results, and looked up by the simulations.

Two tables of the embedded model. Decode: one token a sequence, by sequences and by tokens of context over all of them.
Prefill: one prompt, by tokens. Between two measured points time grows in a straight line, behind the last one as
between the last two. A step of both costs both.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from course.paper.serving import Step


@dataclass(frozen=True, slots=True)
class DecodeTime:
    """Median seconds of a step with `num_seqs` sequences, at the two contexts (tokens over all sequences)."""

    num_seqs: int
    short_context: int
    short_seconds: float
    long_context: int
    long_seconds: float

    def seconds(self, num_context_tokens: float) -> float:
        """On the straight line through both points."""
        slope = (self.long_seconds - self.short_seconds) / (self.long_context - self.short_context)
        return self.short_seconds + max(slope, 0.0) * (num_context_tokens - self.short_context)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The two tables. `prefill[i]` is (tokens, median seconds)."""

    model: str
    decode: tuple[DecodeTime, ...]
    prefill: tuple[tuple[int, float], ...]

    def __call__(self, step: Step) -> float:
        """Seconds of a step."""
        seconds = 0.0
        if num_decodes := step.num_seqs - step.num_prompts:
            seconds += self.decode_seconds(num_decodes, step.num_context_tokens)
        if step.num_prompts:
            seconds += _on_the_line(self.prefill, step.num_prompt_tokens)
        return seconds

    def decode_seconds(self, num_seqs: int, num_context_tokens: int) -> float:
        """Seconds of a step that gives each of `num_seqs` sequences one token."""
        sizes = [row.num_seqs for row in self.decode]
        i = min(max(bisect_right(sizes, num_seqs) - 1, 0), len(sizes) - 2)
        low, high = self.decode[i], self.decode[i + 1]
        share = (num_seqs - low.num_seqs) / (high.num_seqs - low.num_seqs)
        times = [row.seconds(num_context_tokens * row.num_seqs / num_seqs) for row in (low, high)]
        return times[0] + share * (times[1] - times[0])

    def alone(self, _step: Step) -> float:
        """Every step takes as long as a short one of a single sequence: a processor that batches cost nothing."""
        return self.decode[0].short_seconds

    def as_dict(self) -> dict[str, Any]:
        """For the file of results."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> StepTimes:
        """What `as_dict` wrote."""
        decode = tuple(DecodeTime(**row) for row in stored["decode"])
        return cls(stored["model"], decode, tuple((tokens, seconds) for tokens, seconds in stored["prefill"]))


def _on_the_line(points: Sequence[tuple[int, float]], x: float) -> float:
    """The value at `x` of the line through the points; behind the last as between the last two, in front constant."""
    if x <= points[0][0]:
        return points[0][1]
    i = min(bisect_right([place for place, _value in points], x) - 1, len(points) - 2)
    (x0, y0), (x1, y1) = points[i], points[i + 1]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
