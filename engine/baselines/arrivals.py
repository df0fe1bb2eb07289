"""Requests as they arrive: the one input that the paged engine and the contiguous baselines share.

An arrival knows its whole reply in advance. That is what lets a replay say which reserved slots will be used
later and which never will, and what the Pow2 and Oracle rules of `engine/baselines/reservations.py` look at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from engine.i18n import _

MAX_ARRIVAL_STEP = 100_000
MAX_REQUESTS = 10_000
MAX_TOKENS_PER_REQUEST = 100_000
"""Bounds on typed or drawn arrivals, so that a replay always ends in reasonable time."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, added just before step `arrival_step` (from 1) runs.

    `pieces[i]` is the display text of `prompt_token_ids[i]`, `output_pieces[i]` of `output_token_ids[i]`.
    `max_tokens` is the limit the request itself sets on its reply, when it sets one.
    """

    request_id: str
    arrival_step: int
    prompt_token_ids: tuple[int, ...]
    pieces: tuple[str, ...]
    output_token_ids: tuple[int, ...]
    output_pieces: tuple[str, ...]
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.arrival_step <= MAX_ARRIVAL_STEP:
            raise ValueError(
                _("A request arrives at a step from 1 to {max_arrival_step}, not {arrival_step}.").format(
                    max_arrival_step=MAX_ARRIVAL_STEP, arrival_step=self.arrival_step
                )
            )
        if not self.prompt_token_ids or self.num_tokens > MAX_TOKENS_PER_REQUEST:
            raise ValueError(
                _(
                    "A request needs a prompt, and may have at most {max_tokens_per_request} tokens including "
                    "its reply."
                ).format(max_tokens_per_request=MAX_TOKENS_PER_REQUEST)
            )
        if (len(self.prompt_token_ids), self.num_output_tokens) != (len(self.pieces), len(self.output_pieces)):
            raise ValueError(_("Every token needs one piece of text."))

    @classmethod
    def from_words(
        cls,
        request_id: str,
        prompt: Sequence[str],
        output: Sequence[str] = (),
        *,
        arrival_step: int = 1,
        max_tokens: int | None = None,
    ) -> Arrival:
        """A request whose tokens are words; token ids count the words of this request from 0."""
        ids = tuple(range(len(prompt) + len(output)))
        split = len(prompt)
        return cls(request_id, arrival_step, ids[:split], tuple(prompt), ids[split:], tuple(output), max_tokens)

    @classmethod
    def from_lengths(
        cls, request_id: str, num_prompt_tokens: int, num_output_tokens: int, *, arrival_step: int = 1
    ) -> Arrival:
        """A request of the given lengths. Its tokens are their own positions: 0, 1, 2, both as id and as text."""
        if max(num_prompt_tokens, num_output_tokens) > MAX_TOKENS_PER_REQUEST:
            raise ValueError(
                _("A request has at most {max_tokens_per_request} tokens.").format(
                    max_tokens_per_request=MAX_TOKENS_PER_REQUEST
                )
            )
        positions = tuple(map(str, range(num_prompt_tokens + num_output_tokens)))
        prompt, output = positions[:num_prompt_tokens], positions[num_prompt_tokens:]
        return cls.from_words(request_id, prompt, output, arrival_step=arrival_step)

    @property
    def num_prompt_tokens(self) -> int:
        """Length of the prompt."""
        return len(self.prompt_token_ids)

    @property
    def num_output_tokens(self) -> int:
        """The true length of the reply."""
        return len(self.output_token_ids)

    @property
    def num_tokens(self) -> int:
        """Length of prompt and reply together."""
        return self.num_prompt_tokens + self.num_output_tokens


@dataclass(frozen=True, slots=True)
class LengthStatistics:
    """Mean lengths of a workload, in tokens, with where they are from."""

    name: str
    mean_input: float
    mean_output: float
    source: str

    def scaled(self, factor: float) -> LengthStatistics:
        """The same workload with both means times `factor` (at least 1 token), and a name that says so."""
        return replace(
            self,
            name=f"{self.name} x {factor:g}",
            mean_input=max(self.mean_input * factor, 1.0),
            mean_output=max(self.mean_output * factor, 1.0),
        )


_FIGURE_11 = "Kwon et al. 2023, Fig. 11: the means; the shape drawn here (geometric) is ours"
SHAREGPT = LengthStatistics("ShareGPT", 161.31, 337.99, _FIGURE_11)
ALPACA = LengthStatistics("Alpaca", 19.31, 58.45, _FIGURE_11)


def draw_arrivals(
    lengths: LengthStatistics, num_requests: int, *, requests_per_step: float, max_model_len: int, seed: int
) -> list[Arrival]:
    """Seeded arrivals as the paper makes them (section 6.1): Poisson in time, lengths from a workload.

    Lengths are geometric with the workload's means: many short, few long. A prompt is cut to leave one token of
    reply, a reply to end at `max_model_len`; with a tight limit the means drawn are lower than the workload's.
    The same arguments give the same arrivals on every machine. Raises ValueError on values out of range.
    """
    if not 1 <= num_requests <= MAX_REQUESTS or requests_per_step <= 0 or max_model_len < 2:
        raise ValueError(
            _("Draw 1 to {max_requests} requests, at a rate above 0, with room for at least 2 tokens each.").format(
                max_requests=MAX_REQUESTS
            )
        )
    random, moment, arrivals = Random(seed), 0.0, []
    for number in range(num_requests):
        moment += -math.log(1.0 - random.random()) / requests_per_step
        num_prompt = min(_geometric(random, lengths.mean_input), max_model_len - 1)
        num_output = min(_geometric(random, lengths.mean_output), max_model_len - num_prompt)
        step = 1 + int(moment)
        arrivals.append(Arrival.from_lengths(f"r{number}", num_prompt, num_output, arrival_step=step))
    return arrivals


def parse_arrivals(text: str) -> list[Arrival]:
    """Arrivals typed in, one a line: `step prompt_tokens output_tokens`. Raises ValueError naming the line."""
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MAX_REQUESTS:
        raise ValueError(
            _("At most {max_requests} requests can be replayed; these are {num_lines}.").format(
                max_requests=MAX_REQUESTS, num_lines=len(lines)
            )
        )
    return [_parse_line(number, words, f"r{index}") for index, (number, words) in enumerate(lines)]


def _parse_line(number: int, words: list[str], request_id: str) -> Arrival:
    if len(words) != 3 or not all(word.isascii() and word.isdigit() and len(word) <= 9 for word in words):
        raise ValueError(
            _("Line {number} must be three whole numbers: step, prompt tokens, output tokens.").format(number=number)
        )
    step, num_prompt, num_output = map(int, words)
    try:
        return Arrival.from_lengths(request_id, num_prompt, num_output, arrival_step=step)
    except ValueError as error:
        raise ValueError(_("Line {number}: {error}").format(number=number, error=error)) from None


def _geometric(random: Random, mean: float) -> int:
    """A whole number from 1 up, geometric, with the given mean (at least 1)."""
    if mean <= 1.0:
        return 1
    return 1 + int(math.log(1.0 - random.random()) / math.log(1.0 - 1.0 / mean))
