"""Small random models saved the way Hugging Face saves them, so that loading is tested without a download."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedConfig, PreTrainedModel

SHAPE = {
    "vocab_size": 264,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 257,
    "eos_token_id": 258,
    "dtype": "float32",
}


def save_random_model(
    folder: Path, model_class: type[PreTrainedModel], config: PreTrainedConfig, max_shard_size: str = "5GB"
) -> PreTrainedModel:
    """A model with every parameter random, norms and biases too: ones and zeros would hide a missing one."""
    torch.manual_seed(7)
    model = model_class(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter) * (0.3 if parameter.ndim == 1 else 0.2)
            parameter.copy_(noise + 1 if "norm" in name else noise)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    save_byte_level_tokenizer(folder)
    return model


def save_byte_level_tokenizer(folder: Path, chat_template: str | list[dict[str, str]] | None = None) -> None:
    """GPT-2's form with a token a byte, one merge ("th", id 256), and two marks, ids 257 and 258."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(alphabet)} | {"th": 256}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("t", "h")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<bos>", special=True), AddedToken("<eos>", special=True)])
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<bos>", "eos_token": {"content": "<eos>", "lstrip": False}}
    if chat_template is not None:
        settings["chat_template"] = chat_template  # type: ignore[assignment]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
