"""Requests as the paper makes them (section 6.1): Poisson arrivals, lengths with the published means of two data sets.

The paper draws lengths from ShareGPT and Alpaca themselves and prints their means only (Fig. 11). Here they come from
two families with these means, gamma and log-normal. The paper gives no spread, so the standard deviation equals the
mean, as in the geometric lengths of `engine/baselines/arrivals.py`: the one assumption about lengths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from engine.baselines.arrivals import ALPACA, SHAREGPT, LengthStatistics

MAX_MODEL_LEN = 2048
"""Longest sequence of the paper's models (section 6.1)."""
FAMILIES = ("gamma", "log-normal")
MIXES = {"ShareGPT": SHAREGPT, "Alpaca": ALPACA}


@dataclass(frozen=True, slots=True)
class Request:
    """Lengths in tokens. `arrival`: in mean gaps between arrivals, so a rate scales it to seconds.

    prompt: its token ids where they matter; else no two prompts have a token in common.
    """

    number: int
    arrival: float
    num_prompt_tokens: int
    num_output_tokens: int
    prompt: tuple[int, ...] = ()

    @property
    def num_tokens(self) -> int:
        """Of prompt and output together."""
        return self.num_prompt_tokens + self.num_output_tokens


@dataclass(frozen=True, slots=True)
class TraceTask:
    """One memory under one trace."""

    memory: str
    mix: str
    family: str
    seed: int
    num_slots: int
    num_requests: int


def draw_requests(mix: LengthStatistics, family: str, num_requests: int, seed: int) -> list[Request]:
    """Seeded requests, the same on every machine.

    A prompt is cut to leave one token of output, an output to end at `MAX_MODEL_LEN`.
    """
    random, moment, requests = Random(seed), 0.0, []
    for number in range(num_requests):
        moment += random.expovariate(1.0)
        prompt = min(draw_length(random, family, mix.mean_input), MAX_MODEL_LEN - 1)
        output = min(draw_length(random, family, mix.mean_output), MAX_MODEL_LEN - prompt)
        requests.append(Request(number, moment, prompt, output))
    return requests


def draw_length(random: Random, family: str, mean: float) -> int:
    """A whole number from 1 up whose mean and standard deviation are `mean`, to rounding."""
    if family == "gamma":
        drawn = random.gammavariate(1.0, mean)
    else:
        variance = math.log(2.0)  # of the logarithm: the standard deviation is then the mean
        drawn = random.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))
    return max(1, round(drawn))
