"""How long this machine computes a token of a prompt, measured: what a token found in the cache saves.

Two lengths of prompt are run in turn, warm, several times. What the longer one takes more is the price of its further
tokens; what every step costs, however few tokens it has, falls out.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.spread import Spread
from engine.config import EngineConfig
from engine.engine import Engine
from engine.inspect.scratch import ComponentsFactory
from engine.sampling_params import SamplingParams
from engine.trace.events import StepCompleted

SHORT, LONG = 16, 80
"""Tokens of the two prompts."""
BLOCK_SIZE = 16
REPEATS = 5


@dataclass(frozen=True, slots=True)
class PrefillSpeed:
    """One time a repeat: from a prompt's first token to the first token of its reply."""

    short: Spread
    long: Spread
    num_fewest_tokens: int
    num_tokens: int

    @property
    def num_repeats(self) -> int:
        """Measurements of each length."""
        return len(self.long.times_ms)

    @property
    def is_certain(self) -> bool:
        """Whether the clock tells the two lengths apart: every long prompt took longer than every short one."""
        return self.long.lowest > self.short.highest

    @property
    def tokens_per_second(self) -> float:
        """Tokens of a prompt that are computed in a second, what every step costs left out."""
        return 1000 * (self.num_tokens - self.num_fewest_tokens) / (self.long.median - self.short.median)

    def saved_ms(self, num_tokens: int) -> Spread:
        """What not computing so many tokens saves. Later tokens of a long prompt cost more, so it is rather more."""
        share = num_tokens / (self.num_tokens - self.num_fewest_tokens)
        pairs = zip(self.short.times_ms, self.long.times_ms, strict=True)
        return Spread(tuple(share * (long - short) for short, long in pairs))


def prefill_speed(make_components: ComponentsFactory, model: str, repeats: int = REPEATS) -> PrefillSpeed:
    """Measure it with an engine of its own on the loaded weights; one run of each length warms up."""
    config = EngineConfig(
        model=model,
        block_size=BLOCK_SIZE,
        num_blocks=LONG // BLOCK_SIZE + 1,
        max_model_len=LONG + 1,
        max_num_batched_tokens=LONG,
        enable_prefix_caching=False,
    )
    engine = Engine(config, make_components(config))
    times: dict[int, list[float]] = {SHORT: [], LONG: []}
    for _ in range(1 + repeats):
        for num_tokens, measured in times.items():
            measured.append(_time_to_first_token(engine, num_tokens))
    short, long = (Spread(tuple(measured[1:])) for measured in times.values())
    return PrefillSpeed(short, long, SHORT, LONG)


def _time_to_first_token(engine: Engine, num_tokens: int) -> float:
    """ms of the one step that computes the prompt and chooses the first token."""
    token_ids = [1 + at % (engine.components.vocab_size - 1) for at in range(num_tokens)]
    engine.add_request(token_ids, SamplingParams(max_tokens=1, ignore_eos=True))
    engine.step()
    return next(event.elapsed_ms for event in reversed(engine.trace.events) if isinstance(event, StepCompleted))
