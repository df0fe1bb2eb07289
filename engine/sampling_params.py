"""SamplingParams: how one request wants its tokens chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Raises ValueError with a sentence when a value cannot work.

    temperature: 0 is greedy. top_k: 0 keeps all. top_p: share of probability kept. n: samples of one prompt.
    beam_width: above 1 runs beam search and returns the best `n` beams; temperature, top_k and top_p do not apply.
    max_tokens: tokens to generate at most; 0 computes the prompt and generates nothing.
    stop: texts that end the output; they are not part of it. seed: same seed, same text, whatever else runs.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 16
    n: int = 1
    beam_width: int = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be a number of at least 0; it is {self.temperature!r}.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1; it is {self.top_p!r}.")
        for name, low in (("top_k", 0), ("max_tokens", 0), ("n", 1), ("beam_width", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ValueError(f"{name} must be a whole number of at least {low}; it is {value!r}.")
        if self.beam_width > 1 and self.n > self.beam_width:
            raise ValueError(f"n ({self.n}) cannot be larger than beam_width ({self.beam_width}).")
        if not isinstance(self.stop, tuple) or not all(self.stop):
            raise ValueError("stop must be a tuple of texts, none of them empty.")

    @property
    def uses_beam_search(self) -> bool:
        return self.beam_width > 1

    @property
    def num_sequences(self) -> int:
        """Sequences this request may hold at once."""
        return self.beam_width if self.uses_beam_search else self.n
