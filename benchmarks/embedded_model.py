"""The embedded model in the forms that other engines take: transformers, a Hugging Face folder, the GGUF itself."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.model.load_report import ignore_progress
from engine.model.weights.cache import cached_folder
from engine.model.weights.download import GGUF_NAME, fetch_gguf
from engine.model.weights.embedded import eight_bits, embedded_folder, four_bits, read_tensors

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@cache
def in_transformers() -> LlamaForCausalLM:
    """The embedded model as transformers runs it in float32, from the dequantised weights of our cache.

    Building it this way takes a second instead of the many that transformers needs to read the GGUF itself.
    """
    folder = embedded_folder(ignore_progress)
    tensors = read_tensors(folder)
    weights = {name: tensor for name, tensor in tensors.items() if name.endswith(".weight")}
    for name in (name.removesuffix(".nibbles") for name in tensors if name.endswith(".nibbles")):
        weights[f"{name}.weight"] = four_bits(tensors, name).dequantised()
    tied = eight_bits(tensors, "model.embed_tokens").dequantised()
    weights |= {"model.embed_tokens.weight": tied, "lm_head.weight": tied}
    return _llama_around(weights, LlamaConfig.from_pretrained(folder))


def huggingface_folder() -> Path:
    """The dequantised weights as a checkpoint on disk, written once."""
    return cached_folder("benchmark-huggingface-1", _save)


def gguf_file() -> Path:
    """The four-bit file itself, fetched once more: our own cache keeps only what it was converted to."""
    folder = cached_folder("benchmark-gguf-1", _fetch)
    return next(folder.rglob(GGUF_NAME))


def _fetch(folder: Path) -> None:
    fetch_gguf(folder, ignore_progress)


def _llama_around(weights: dict[str, Tensor], config: LlamaConfig) -> LlamaForCausalLM:
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(weights, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its frequencies are no weights
    return model.eval()


def _save(folder: Path) -> None:
    in_transformers().save_pretrained(folder)
    for name in TOKENIZER_FILES:
        shutil.copy(embedded_folder(ignore_progress) / name, folder)
