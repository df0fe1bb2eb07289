"""The live page's settings: their limits, and their values in this tab, within range whatever the address said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from engine.config import MAX_BLOCK_SIZE, EngineConfig
from engine.events import PreemptionMode
from engine.sampling_params import SamplingParams
from views import live_config
from views.recipe import LONGEST_PROMPT, MAX_SAMPLES
from views.server import EMBEDDED, TINY, default_model
from views.url_values import ChoiceRule, NumberRule, Rule, TextRule

PACES = {"2 steps a second": 0.5, "5 steps a second": 0.2, "20 steps a second": 0.05, "As fast as it can": 0.0}
WAYS_TO_MAKE_ROOM: dict[str, PreemptionMode] = {"Compute again": "recompute", "Swap out": "swap"}

EXAMPLES = {
    "A fact": "The capital of France is",
    "A list": "Three primary colours are",
    "A fox": "The quick brown fox",
    "A story": "Once upon a time, a small robot",
}


@dataclass(frozen=True)
class NumberSetting:
    """A whole number that a reader sets. `key` is its name in the address."""

    key: str
    label: str
    low: int
    high: int
    default: int
    explanation: str

    @property
    def value(self) -> int:
        return int(min(max(_value(self.key, self.default), self.low), self.high))


BLOCK_SIZE = NumberSetting(
    "block_size", "Block size", 1, MAX_BLOCK_SIZE, 4, "Slots in a block: how many tokens it has room for."
)
NUM_BLOCKS = NumberSetting("num_blocks", "Blocks", 1, live_config.MAX_BLOCKS, 32, "Blocks in this tab's pool.")
SAMPLES = NumberSetting(
    "samples", "Samples", 1, MAX_SAMPLES, 1, "How many answers a request gives. They share the blocks of its prompt."
)
BEAMS = NumberSetting(
    "beams", "Beams", 1, MAX_SAMPLES, 1, "Above 1: beam search. The best continuations of all beams together live on."
)
MAX_TOKENS = NumberSetting("max_tokens", "New tokens at most", 1, 2000, 24, "Where an answer is cut off.")
SEED = NumberSetting("seed", "Seed", 0, 2**31 - 1, 0, "The same seed gives the same text.")
NUMBERS = (BLOCK_SIZE, NUM_BLOCKS, SAMPLES, BEAMS, MAX_TOKENS, SEED)


def rules() -> list[Rule]:
    """What the address may say."""
    numbers = [NumberRule(s.key, s.label, s.low, s.high, s.default) for s in NUMBERS]
    return [
        TextRule("prompt", "The prompt", LONGEST_PROMPT),
        ChoiceRule("model", "Model", models()),
        ChoiceRule("pace", "Pace of Run", list(PACES)),
        ChoiceRule("make_room", "When memory is short", list(WAYS_TO_MAKE_ROOM)),
        NumberRule("temperature", "Temperature", 0.0, 2.0, 0.7),
        *numbers,
    ]


def models() -> list[str]:
    """The models to choose from, the default first."""
    return list(dict.fromkeys([default_model(), EMBEDDED, TINY]))


def chosen_model() -> str:
    model = _value("model", default_model())
    return model if model in models() else default_model()


def chosen_prompt() -> str:
    return _value("prompt", EXAMPLES["A fact"])


def uses_chat_template() -> bool:
    return _value("chat", False)


def seconds_between_steps() -> float:
    """The pace of Run."""
    slowest = next(iter(PACES))
    return PACES.get(_value("pace", slowest), PACES[slowest])


def num_blocks_within_memory() -> int:
    return live_config.num_blocks_within_memory(NUM_BLOCKS.value, BLOCK_SIZE.value)


def engine_config(model: str) -> EngineConfig:
    """The engine that the settings ask for."""
    way = _value("make_room", "")
    return live_config.live_config(
        model,
        BLOCK_SIZE.value,
        num_blocks_within_memory(),
        _value("prefix_caching", True),
        WAYS_TO_MAKE_ROOM.get(way, "recompute"),
    )


def sampling_params() -> SamplingParams:
    """What the next request asks for. Raises ValueError when samples and beams do not fit together."""
    temperature = min(max(_value("temperature", 0.7), 0.0), 2.0)
    return SamplingParams(
        temperature=temperature,
        max_tokens=MAX_TOKENS.value,
        n=SAMPLES.value,
        beam_width=BEAMS.value,
        seed=SEED.value,
        ignore_eos=not _value("stop_at_end", True),
    )


T = TypeVar("T")


def _value(key: str, default: T) -> T:
    """What the widget `key` holds, or its default before it was first drawn."""
    value: T | None = st.session_state.get(key)
    return default if value is None else value
