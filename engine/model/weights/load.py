"""Where a model comes from, by its name: the embedded one, the tiny one, a local folder, or a hub id."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch

from engine.i18n import _
from engine.model.config import ModelConfig
from engine.model.device import TORCH_DTYPES, keep_sums_in_float32, resolve_dtype
from engine.model.interpreter_exit import computing
from engine.model.llama import LlamaModel, build_model
from engine.model.load_report import Progress, ProgressCallback, ignore_progress
from engine.model.tokenizer import ByteTokenizer, Tokenizer, load_tokenizer
from engine.model.weights.embedded import EMBEDDED_MODEL, embedded_folder, embedded_int4_source, embedded_source
from engine.model.weights.hub import eos_token_ids, folder_source, model_folder, read_config
from engine.model.weights.tiny import TINY_CONFIG, TINY_MODEL, tiny_source


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer, ready to be shared by engines."""

    name: str
    dtype: str
    """What the weights run in: "float32", "bfloat16", "float16" or "int4"; never "auto"."""
    config: ModelConfig
    tokenizer: Tokenizer
    model: LlamaModel


@computing
def load_model(
    name: str,
    *,
    dtype: str = "auto",
    device: torch.device | str = "cpu",
    progress: ProgressCallback = ignore_progress,
) -> LoadedModel:
    """Load "smollm2-135m-instruct", "tiny-random", a local folder, or a Hugging Face id.

    `dtype` is one of engine.model.device.DTYPES. Raises ModelUnavailableError (cannot be had now),
    UnsupportedModelError (cannot be run) or their parent ModelLoadError, each with one plain sentence.
    """
    keep_sums_in_float32()
    loaded = _load(name, dtype, torch.device(device), progress)
    logging.getLogger(__name__).info("weights of %s loaded: %s on %s", name, loaded.dtype, loaded.model.device)
    return loaded


def _load(name: str, dtype: str, device: torch.device, progress: ProgressCallback) -> LoadedModel:
    if name == TINY_MODEL:
        return _load_tiny(dtype, device)
    if name == EMBEDDED_MODEL:
        return _load_embedded(dtype, device, progress)
    return _load_folder(name, dtype, device, progress)


def _load_tiny(dtype: str, device: torch.device) -> LoadedModel:
    chosen = resolve_dtype(dtype, four_bit_weights=False, checkpoint="float32", device=device)
    model = build_model(TINY_CONFIG, tiny_source(TORCH_DTYPES[chosen], device))
    return LoadedModel(TINY_MODEL, chosen, TINY_CONFIG, ByteTokenizer(), model)


def _load_embedded(dtype: str, device: torch.device, progress: ProgressCallback) -> LoadedModel:
    chosen = resolve_dtype(dtype, four_bit_weights=True, checkpoint="float32", device=device)
    folder = embedded_folder(progress)
    progress(Progress(0, 0, _("Loading the SmolLM2 model")))
    config = read_config(folder)
    source = embedded_int4_source(folder) if chosen == "int4" else embedded_source(folder, TORCH_DTYPES[chosen], device)
    tokenizer = load_tokenizer(folder, config.eos_token_ids)
    return LoadedModel(EMBEDDED_MODEL, chosen, config, tokenizer, build_model(config, source))


def _load_folder(name: str, dtype: str, device: torch.device, progress: ProgressCallback) -> LoadedModel:
    folder = model_folder(name, progress)
    progress(Progress(0, 0, _("Loading {name}").format(name=name)))
    config = read_config(folder)
    chosen = resolve_dtype(dtype, four_bit_weights=False, checkpoint=config.checkpoint_dtype, device=device)
    source = folder_source(folder, config, TORCH_DTYPES[chosen], device)
    tokenizer = load_tokenizer(folder, eos_token_ids(folder, config))
    return LoadedModel(name, chosen, config, tokenizer, build_model(config, source))
