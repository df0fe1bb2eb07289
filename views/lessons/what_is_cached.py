"""Lesson "What is cached": keys and values of one request, and what they cost for a model on a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from course.messages import Plural
from course.what_is_cached.lesson import LESSON
from course.what_is_cached.scene import what_is_cached
from course.words import FOX, passage
from engine.i18n import N_, _
from engine.model.kv_cache_size import HALF_PRECISION, WELL_KNOWN, CardFit, ModelFacts, fit_on_card, size_in_words
from engine.trace.state import CacheState
from engine.trace.usage import usage_of
from views.figures import Figure
from views.lesson_picture import FrameTexts, Picture, picture
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule

if TYPE_CHECKING:
    from engine.model.weights.load import LoadedModel

KEY = LESSON.key
MODELS = {model.name: model for model in WELL_KNOWN}
PRECISIONS = {N_("16 bits"): HALF_PRECISION, N_("32 bits"): 4, N_("8 bits"): 1}
LARGEST_CARD = 1024
MODEL = ChoiceRule("model", N_("Model"), tuple(MODELS))
PRECISION = ChoiceRule("precision", N_("Precision"), tuple(PRECISIONS))
CARD = NumberRule("card", N_("GPU memory"), 1, LARGEST_CARD, 80)
TOKENS = "tokens"
NUM_PROMPT, NUM_REPLY = 3, 13

FIGURES = (
    Figure(N_("Tokens known"), "{usage.num_tokens_known}"),
    Figure(N_("Keys and values written"), "{usage.num_tokens_written}"),
    Figure(N_("KV cache of this request"), "{cache_size}"),
)
CAPTIONS = (
    N_(
        "**The prompt is written in one step.** After that, each step writes the keys and values of one token "
        "and samples the next. Here one large block holds them all; small blocks come later."
    ),
    Plural(
        "usage.num_tokens_known",
        "{n} token known, {usage.num_tokens_written} written. A token that was just sampled has no keys and "
        "values yet: the next step computes them.",
        "{n} tokens known, {usage.num_tokens_written} written. A token that was just sampled has no keys and "
        "values yet: the next step computes them.",
    ),
    N_("In {model.name}, one token takes {per_token}. This request holds {cache_size}, as long as it runs."),
)
CARD_FIGURES = (
    Figure(N_("Keys and values of one token"), "{per_token}"),
    Figure(N_("Weights"), "{weights}"),
    Figure(N_("Left for the KV cache"), "{left}"),
    Figure(N_("Tokens that fit"), "{fit.num_tokens:,}"),
)


@memoize(maxsize=64)
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
    return picture(
        scene,
        FrameTexts(Plural("value", "{n} token", "{n} tokens"), FIGURES, captions=CAPTIONS, more=size),
        _("The KV cache of one request"),
    )


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
    from engine.model.device import TORCH_DTYPES  # brings torch, which is there when a model runs

    name = _("{w.name} (running here)").format(w=weights)
    return ModelFacts.of(name, weights.config), TORCH_DTYPES[info["kv_dtype"]].itemsize


def models_frame(models: Iterable[tuple[ModelFacts, int]], card_gb: int) -> pd.DataFrame:
    """One row a model and its bytes a number: the figures of its configuration, and what a card has room for."""
    return pd.DataFrame([_row(model, num_bytes, card_gb) for model, num_bytes in models])


def _row(model: ModelFacts, num_bytes: int, card_gb: int) -> dict[str, Any]:
    return {
        N_("Model"): model.name,
        N_("Layers"): model.num_layers,
        N_("Heads"): model.num_heads,
        N_("KV heads"): model.num_kv_heads,
        N_("Head dimension"): model.head_dim,
        N_("Bytes per value"): num_bytes,
        N_("One token"): size_in_words(model.kv_bytes_per_token(num_bytes)),
        _("Tokens in {card} GB").format(card=card_gb): _tokens(model, num_bytes, card_gb),
    }


def _tokens(model: ModelFacts, num_bytes: int, card_gb: int) -> str:
    fit: CardFit = fit_on_card(model, card_gb, bytes_per_element=num_bytes)
    return f"{fit.num_tokens:,}" if fit.weights_fit else _("weights do not fit")
