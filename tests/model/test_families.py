"""Folders of every supported architecture give the logits transformers gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from engine.model.load_report import ModelLoadError, ModelUnavailableError, UnsupportedModelError
from engine.model.weights.load import load_model
from tests.helpers.model_folders import SHAPE, save_random_model
from tests.helpers.models import paged_logits, transformers_logits

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
FAMILIES: dict[str, tuple[Any, Any]] = {
    "llama, untied": (LlamaForCausalLM, LlamaConfig(**SHAPE)),
    "llama, tied, biases": (
        LlamaForCausalLM,
        LlamaConfig(**SHAPE, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    ),
    "llama, long rope": (LlamaForCausalLM, LlamaConfig(**SHAPE, rope_parameters=LLAMA3_ROPE)),
    "llama, linear rope": (
        LlamaForCausalLM,
        LlamaConfig(**SHAPE, rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}),
    ),
    "mistral, sliding window": (MistralForCausalLM, MistralConfig(**SHAPE, sliding_window=8)),
    "qwen2, biases": (Qwen2ForCausalLM, Qwen2Config(**SHAPE)),
    "qwen2, window in upper layers": (
        Qwen2ForCausalLM,
        Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=8, max_window_layers=1),
    ),
    "qwen3, normalised heads": (Qwen3ForCausalLM, Qwen3Config(**SHAPE, head_dim=16, tie_word_embeddings=True)),
}
TOKEN_IDS = [int(i) for i in torch.randint(0, 256, (40,), generator=torch.Generator().manual_seed(1))]


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_transformers(family: str, tmp_path: Path) -> None:
    theirs = save_random_model(tmp_path, *FAMILIES[family])
    ours = load_model(str(tmp_path), dtype="float32")
    expected = transformers_logits(theirs, TOKEN_IDS)
    one_by_one = paged_logits(ours, TOKEN_IDS, [1] * len(TOKEN_IDS))
    torch.testing.assert_close(one_by_one, expected, atol=1e-4, rtol=0)
    in_chunks = paged_logits(ours, TOKEN_IDS, [7, 1, 20, 12])
    torch.testing.assert_close(in_chunks, expected[[6, 7, 27, 39]], atol=1e-4, rtol=0)


def test_several_files_are_read_as_one_model(tmp_path: Path) -> None:
    theirs = save_random_model(tmp_path, LlamaForCausalLM, LlamaConfig(**SHAPE), max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ours = load_model(str(tmp_path), dtype="float32")
    last = transformers_logits(theirs, TOKEN_IDS)[-1:]
    torch.testing.assert_close(paged_logits(ours, TOKEN_IDS, [40]), last, atol=1e-4, rtol=0)


def test_bfloat16_stays_near_float32(tmp_path: Path) -> None:
    theirs = save_random_model(tmp_path, LlamaForCausalLM, LlamaConfig(**SHAPE))
    ours = load_model(str(tmp_path), dtype="bfloat16")
    assert ours.model.dtype is torch.bfloat16
    logits = paged_logits(ours, TOKEN_IDS, [40], dtype=torch.bfloat16)
    expected = transformers_logits(theirs, TOKEN_IDS)[-1:]
    assert logits.dtype is torch.float32
    assert (logits - expected).abs().max() < 0.05 * expected.abs().max()


def test_end_of_text_ids_come_from_the_generation_config(tmp_path: Path) -> None:
    save_random_model(tmp_path, LlamaForCausalLM, LlamaConfig(**SHAPE))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [258, 257]}', "utf-8")
    assert load_model(str(tmp_path)).tokenizer.eos_token_ids == (258, 257)


def test_unknown_architecture_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["GPTNeoXForCausalLM"]}', "utf-8")
    with pytest.raises(UnsupportedModelError) as refusal:
        load_model(str(tmp_path))
    assert str(refusal.value) == (
        "GPTNeoXForCausalLM is not an architecture this engine runs. "
        "It runs LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM."
    )


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    save_random_model(tmp_path, LlamaForCausalLM, LlamaConfig(**SHAPE))
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelLoadError, match=r"no \.safetensors file"):
        load_model(str(tmp_path))


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    save_random_model(tmp_path, LlamaForCausalLM, LlamaConfig(**SHAPE))
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelLoadError, match=r"model\.safetensors is damaged"):
        load_model(str(tmp_path))


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    save_random_model(tmp_path, LlamaForCausalLM, LlamaConfig(**SHAPE))
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}), "utf-8")
    with pytest.raises(ModelLoadError, match=r"no tensor named model\.layers\.3\."):
        load_model(str(tmp_path))


def test_a_folder_without_config_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"no readable config\.json"):
        load_model(str(tmp_path))


def test_an_invalid_model_name_is_refused_without_network_access() -> None:
    with pytest.raises(ModelUnavailableError, match=r"neither a folder .* nor a model"):
        load_model("no such model / anywhere")
