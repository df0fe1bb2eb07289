"""The live page's settings: their limits, and their values in this tab, within range whatever the address said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from engine.config import MAX_BLOCK_SIZE, EngineConfig
from engine.i18n import N_
from engine.sampling_params import SamplingParams
from views.live import config
from views.live.recipe import LONGEST_PROMPT, MAX_SAMPLES
from views.server.model_registry import default_model, model_names
from views.url_values import ChoiceRule, NumberRule, Rule, TextRule

PACES = {
    N_("2 steps a second"): 0.5,
    N_("5 steps a second"): 0.2,
    N_("20 steps a second"): 0.05,
    N_("As fast as it can"): 0.0,
}

EXAMPLES = {
    N_("A fact"): "The capital of France is",
    N_("A list"): "Three primary colours are",
    N_("A fox"): "The quick brown fox",
    N_("A story"): "Once upon a time, a small robot",
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
        """The number chosen in this tab, within range."""
        return int(min(max(_value(self.key, self.default), self.low), self.high))


PROMPT = TextRule("prompt", N_("The prompt"), LONGEST_PROMPT)
BLOCK_SIZE = NumberSetting(
    "block_size", N_("Block size"), 1, MAX_BLOCK_SIZE, 4, N_("Slots per block: how many tokens it holds.")
)
NUM_BLOCKS = NumberSetting("num_blocks", N_("Blocks"), 1, config.MAX_BLOCKS, 32, N_("Blocks in this tab's pool."))
SAMPLES = NumberSetting(
    "samples",
    N_("Samples"),
    1,
    MAX_SAMPLES,
    1,
    N_("Answers per request. They share the blocks of the prompt."),
)
BEAMS = NumberSetting(
    "beams",
    N_("Beams"),
    1,
    MAX_SAMPLES,
    1,
    N_("Above 1: beam search. Each step keeps the best continuations over all beams."),
)
MAX_TOKENS = NumberSetting(
    "max_tokens", N_("New tokens at most"), 1, 2000, 24, N_("The most tokens an answer may have.")
)
SEED = NumberSetting("seed", N_("Seed"), 0, 2**31 - 1, 0, N_("The same prompt, settings and seed give the same text."))
NUMBERS = (BLOCK_SIZE, NUM_BLOCKS, SAMPLES, BEAMS, MAX_TOKENS, SEED)


def rules() -> list[Rule]:
    """What the address may say."""
    numbers = [NumberRule(s.key, s.label, s.low, s.high, s.default) for s in NUMBERS]
    return [
        PROMPT,
        ChoiceRule("model", N_("Model"), model_names()),
        ChoiceRule("pace", N_("Speed of Run"), list(PACES)),
        ChoiceRule("make_room", N_("Preemption"), list(config.WAYS_TO_MAKE_ROOM), {"Compute again": "Recompute"}),
        NumberRule("temperature", N_("Temperature"), 0.0, 2.0, 0.7),
        *numbers,
    ]


def chosen_model() -> str:
    """The model chosen in this tab, or the default."""
    model = _value("model", default_model())
    return model if model in model_names() else default_model()


def chosen_prompt() -> str:
    """Never longer than the limit: a click may come together with the paste that is cut only after it."""
    return _value(PROMPT.key, EXAMPLES["A fact"])[: PROMPT.longest]


def uses_chat_template() -> bool:
    """Whether the prompt is wrapped in the model's chat template."""
    return _value("chat", False)


def seconds_between_steps() -> float:
    """The pace of Run."""
    slowest = next(iter(PACES))
    return PACES.get(_value("pace", slowest), PACES[slowest])


def num_blocks_within_memory() -> int:
    """The number of blocks chosen in this tab, less when the pool would be too large."""
    return config.num_blocks_within_memory(NUM_BLOCKS.value, BLOCK_SIZE.value)


def engine_config(model: str) -> EngineConfig:
    """The engine that the settings ask for."""
    way = _value("make_room", "")
    return config.live_config(
        model,
        BLOCK_SIZE.value,
        num_blocks_within_memory(),
        _value("prefix_caching", True),
        config.WAYS_TO_MAKE_ROOM.get(way, "recompute"),
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
