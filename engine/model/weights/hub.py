"""Llama-family models in Hugging Face's form: a local folder, or an id to fetch from the hub. Safetensors only."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.i18n import _
from engine.model.config import ModelConfig, as_id_tuple, parse_hf_config
from engine.model.load_report import ModelLoadError, ModelUnavailableError, Progress, ProgressCallback
from engine.model.weights.source import DenseSource, WeightSource

WANTED_FILES = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja", "*.model", "merges.txt"]


def model_folder(name: str, progress: ProgressCallback) -> Path:
    """`name` as a folder, fetched from the hub unless it is one or is cached.

    Raises ModelUnavailableError with one sentence when it cannot be had.
    """
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else _snapshot(name, progress)


def read_config(folder: Path) -> ModelConfig:
    """Raises ModelLoadError without a readable `config.json`, UnsupportedModelError for another architecture."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(
            _("{folder} has no readable config.json, so it is not a model folder.").format(folder=folder)
        ) from error
    return parse_hf_config(config)


def eos_token_ids(folder: Path, config: ModelConfig) -> tuple[int, ...]:
    """`generation_config.json` knows more ends of text (end of turn) than `config.json`."""
    file = folder / "generation_config.json"
    settings: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return as_id_tuple(settings.get("eos_token_id")) or config.eos_token_ids


def folder_source(folder: Path, config: ModelConfig, dtype: torch.dtype, device: torch.device) -> WeightSource:
    """The folder's tensors, mapped rather than read. Raises ModelLoadError when there are none, or damaged ones."""
    return DenseSource(partial(_fetch, _open_shards(folder)), dtype, device, config.tie_word_embeddings)


def _open_shards(folder: Path) -> dict[str, Any]:
    """Tensor name -> the open file that holds it."""
    from safetensors import SafetensorError, safe_open  # here, because the tiny model needs no file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelLoadError(
            _(
                "{folder} has no .safetensors file. Weights in pickled form (.bin, .pt) are not read, "
                "because they can run code; choose a model saved as safetensors."
            ).format(folder=folder)
        )
    shards: dict[str, Any] = {}
    for file in files:
        try:
            opened: Any = safe_open(file, framework="pt")
        except SafetensorError as error:
            raise ModelLoadError(
                _("{name} is damaged ({error}); download the model again.").format(name=file.name, error=error)
            ) from error
        shards |= dict.fromkeys(opened.keys(), opened)
    return shards


def _fetch(shards: dict[str, Any], name: str) -> Tensor | None:
    """The tensor of that name, of any shape, as the checkpoint has it; None when it has none."""
    shard = shards.get(name)
    return None if shard is None else shard.get_tensor(name)


def _snapshot(name: str, progress: ProgressCallback) -> Path:
    # Imported here because the embedded and the tiny model need no hub.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    progress(Progress(0, 0, _("Downloading {name} from the Hugging Face hub, once").format(name=name)))
    try:
        return Path(snapshot_download(name, allow_patterns=WANTED_FILES))
    except GatedRepoError as error:
        raise ModelUnavailableError(
            _(
                "{name} can be downloaded only after its licence is accepted: accept it on its Hugging Face "
                "page, then log in here."
            ).format(name=name)
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelUnavailableError(
            _(
                "{name} is neither a folder on this machine nor a model of the Hugging Face hub. Check "
                "the spelling, or choose one of the models by name: smollm2-135m-instruct, tiny-random."
            ).format(name=name)
        ) from error
    except Exception as error:
        raise ModelUnavailableError(
            _(
                "{name} is not on this machine and the Hugging Face hub could not be reached. Connect "
                "to the network once, or give the path of a local folder."
            ).format(name=name)
        ) from error
