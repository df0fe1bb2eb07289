"""Lesson "What is cached": keys and values of one request, and what they cost for a model on a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from engine.model_facts import HALF_PRECISION, WELL_KNOWN, CardFit, ModelFacts, fit_on_card, size_in_words
from engine.scenes.what_is_cached import what_is_cached
from engine.scenes.words import FOX, passage
from engine.state import CacheState
from engine.usage import usage_of
from views.lesson_picture import Picture, Telling, picture
from views.made_once import made_once
from views.told import Figure, tell
from views.url_values import ChoiceRule, NumberRule
from views.words import translated

if TYPE_CHECKING:
    from engine.weights import LoadedModel

KEY = "what_is_cached"
MODELS = {model.name: model for model in WELL_KNOWN}
PRECISIONS = {"16 bits": HALF_PRECISION, "32 bits": 4, "8 bits": 1}
LARGEST_CARD = 1024
MODEL = ChoiceRule("model", "Model", tuple(MODELS))
PRECISION = ChoiceRule("precision", "A number takes", tuple(PRECISIONS))
CARD = NumberRule("card", "Card", 1, LARGEST_CARD, 80)
TOKENS = "tokens"
DEFAULT_TOKENS = 7
NUM_PROMPT, NUM_REPLY = 3, 13

FIGURES = (
    Figure("Tokens known", "{usage.num_tokens_known}"),
    Figure("Keys and values written", "{usage.num_tokens_written}"),
    Figure("Cache of this request", "{cache_size}"),
)
BEATS = (
    "**The prompt is written in one step.** After that, each step writes the keys and values of one token "
    "and chooses the next. One large block holds it all here; small blocks come later.",
    "{usage.num_tokens_known:token} known, {usage.num_tokens_written} written. "
    "A token that was just chosen has no keys and values yet: the next step computes them.",
    "In {model.name}, one token takes {per_token}. This request holds {cache_size}, as long as it runs.",
)
CARD_FIGURES = (
    Figure("Keys and values of one token", "{per_token}"),
    Figure("Weights", "{weights}"),
    Figure("Left for the cache", "{left}"),
    Figure("Tokens that fit", "{fit.num_tokens:,}"),
)


@made_once(maxsize=64)
def cached(model_name: str, precision: str) -> Picture:
    """Values: tokens written. The words are scripted; the sizes are those of the chosen model."""
    model, num_bytes = MODELS[model_name], PRECISIONS[precision]

    def size(state: CacheState) -> dict[str, Any]:
        written = usage_of(state).num_tokens_written
        return {
            "cache_size": size_in_words(model.kv_bytes(written, num_bytes)),
            "per_token": size_in_words(model.kv_bytes_per_token(num_bytes)),
            "model": model,
        }

    scene = what_is_cached(FOX[:NUM_PROMPT], (*FOX[NUM_PROMPT:], *passage(NUM_REPLY))[:NUM_REPLY])
    return picture(scene, Telling("{value:token}", FIGURES, beats=BEATS, more=size), "The cache of one request")


def card_facts(model_name: str, precision: str, card_gb: int) -> dict[str, Any]:
    """What `CARD_FIGURES` tell: the cache that fits beside the weights."""
    model, num_bytes = MODELS[model_name], PRECISIONS[precision]
    fit = fit_on_card(model, card_gb, bytes_per_element=num_bytes)
    return {
        "model": model,
        "card": card_gb,
        "fit": fit,
        "per_token": size_in_words(fit.kv_bytes_per_token),
        "weights": size_in_words(fit.weight_bytes),
        "left": size_in_words(fit.kv_bytes),
        "usable": size_in_words(fit.usable_bytes),
    }


def running_model(weights: LoadedModel, info: Mapping[str, Any]) -> tuple[ModelFacts, int]:
    """The facts of the model that this server runs, and the bytes of a number in its cache: `info` is its engine's."""
    from engine.dtypes import TORCH_DTYPES  # brings torch, which is there when a model runs

    name = tell("{w.name} (running here)", {"w": weights})
    return ModelFacts.of(name, weights.config), TORCH_DTYPES[info["kv_dtype"]].itemsize


def models_frame(models: Iterable[tuple[ModelFacts, int]], card_gb: int) -> pd.DataFrame:
    """One row a model and its bytes a number: the figures of its configuration, and what a card has room for."""
    return pd.DataFrame([_row(model, num_bytes, card_gb) for model, num_bytes in models])


def _row(model: ModelFacts, num_bytes: int, card_gb: int) -> dict[str, Any]:
    return {
        "Model": model.name,
        "Layers": model.num_layers,
        "Heads": model.num_heads,
        "KV heads": model.num_kv_heads,
        "Numbers a head": model.head_dim,
        "Bytes a number": num_bytes,
        "One token": size_in_words(model.kv_bytes_per_token(num_bytes)),
        tell("Tokens on {card} GB", {"card": card_gb}): _tokens(model, num_bytes, card_gb),
    }


def _tokens(model: ModelFacts, num_bytes: int, card_gb: int) -> str:
    fit: CardFit = fit_on_card(model, card_gb, bytes_per_element=num_bytes)
    return f"{fit.num_tokens:,}" if fit.weights_fit else translated("weights do not fit")
