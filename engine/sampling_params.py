"""SamplingParams: how one request wants its tokens chosen."""

from __future__ import annotations

from dataclasses import dataclass

from engine.i18n import _
from engine.trace.validation import check_fields

LOWEST_TEMPERATURE = 1e-5
"""Below it sampling is greedy, as in vLLM."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Raises ValueError with a sentence when a value cannot work, or is not of its type.

    temperature: 0 is greedy, and so is all below 1e-5. top_k: 0 keeps all. top_p: share of probability kept.
    n: samples of one prompt. beam_width: above 1 runs beam search and returns the best `n` beams; temperature, top_k
        and top_p do not apply.
    max_tokens: tokens to generate at most; 0 computes the prompt, and each of the `n` outputs is empty.
    stop: texts that end the output; they are not part of it. A beam that meets one is finished, and no two finished
        beams say the same because of it.
    seed: of this request's random numbers. The same seed draws the same text from the same logits. Those are the same
        bits whatever else runs, also after preemption, if the engine is `batch_invariant`; without, to rounding, which
        can change a token.
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
        check_fields(self)
        if self.temperature < 0:
            raise ValueError(
                _("temperature must be a number of at least 0; it is {temperature!r}.").format(
                    temperature=self.temperature
                )
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(_("top_p must be above 0 and at most 1; it is {top_p!r}.").format(top_p=self.top_p))
        for name, low in (("top_k", 0), ("max_tokens", 0), ("n", 1), ("beam_width", 1)):
            value = getattr(self, name)
            if value < low:
                raise ValueError(
                    _("{name} must be a whole number of at least {low}; it is {value!r}.").format(
                        name=name, low=low, value=value
                    )
                )
        if self.beam_width > 1 and self.n > self.beam_width:
            raise ValueError(
                _("n ({n}) cannot be larger than beam_width ({beam_width}).").format(
                    n=self.n, beam_width=self.beam_width
                )
            )
        if not all(self.stop):
            raise ValueError(_("stop must be a tuple of texts, none of them empty."))

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is taken: divided by less than this, scores overflow."""
        return self.temperature < LOWEST_TEMPERATURE

    @property
    def uses_beam_search(self) -> bool:
        """Whether the request is a beam search instead of samples."""
        return self.beam_width > 1

    @property
    def num_sequences(self) -> int:
        """Sequences this request may hold at once."""
        return self.beam_width if self.uses_beam_search else self.n
