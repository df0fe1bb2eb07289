"""The GGUF is read to the last bit: dequantised numbers, row order, settings and tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.model.llama import build_model
from engine.model.tokenizer import load_tokenizer
from engine.model.weights.embedded import WEIGHTS_FILE, eight_bits, embedded_int4_source, four_bits, read_tensors
from engine.model.weights.gguf import convert_gguf
from engine.model.weights.hub import read_config
from tests.helpers.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Tensor]]:
    """The converted folder, and the weights the file stands for by the gguf package's own reckoning."""
    folder = tmp_path_factory.mktemp("converted")
    gguf = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    weights = write_tiny_gguf(gguf)
    convert_gguf(gguf, folder, WEIGHTS_FILE)
    return folder, weights


def test_every_number_is_the_file_s(converted: tuple[Path, dict[str, Tensor]]) -> None:
    folder, expected = converted
    tensors = read_tensors(folder)
    for name, weight in expected.items():
        base = name.removesuffix(".weight")
        if f"{base}.nibbles" in tensors:
            assert torch.equal(four_bits(tensors, base).dequantised(), weight), name
        elif f"{base}.quantised" in tensors:
            assert torch.equal(eight_bits(tensors, base).dequantised(), weight), name
        else:
            assert torch.equal(tensors[name], weight), name
    assert len(expected) == 2 + 2 * 9


def test_settings_become_a_config(converted: tuple[Path, dict[str, Tensor]]) -> None:
    config = read_config(converted[0])
    assert (config.num_layers, config.num_heads, config.num_kv_heads, config.head_dim) == (2, 4, 2, 16)
    assert (config.hidden_size, config.intermediate_size, config.vocab_size) == (64, 96, 272)
    assert config.tie_word_embeddings and config.eos_token_ids == (2,)
    assert config.rms_norm_eps == pytest.approx(1e-5) and config.rope.theta == 10_000.0


def test_tokenizer_and_chat_template_come_along(converted: tuple[Path, dict[str, Tensor]]) -> None:
    tokenizer = load_tokenizer(converted[0], (2,))
    token_ids = tokenizer.encode("the thé")
    assert len(token_ids) == len("the thé".encode()) - 2  # "th" is one token, twice
    assert tokenizer.decode(token_ids) == "the thé"
    assert tokenizer.render_chat([{"role": "user", "content": "hi"}]) == "user: hi<eos>"


def test_four_bit_products_equal_dequantised_ones(converted: tuple[Path, dict[str, Tensor]]) -> None:
    """Up to the rounding of scale, zero and activations to bfloat16 (8 bits: 0.4 % each)."""
    folder, expected = converted
    layer = build_model(read_config(folder), embedded_int4_source(folder)).layers[1]
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(2)).bfloat16().float()
    names = [f"model.layers.1.self_attn.{projection}_proj.weight" for projection in "qkv"]
    exact = x @ torch.cat([expected[name] for name in names]).T
    assert (layer.qkv(x).float() - exact).abs().max() < 0.02 * exact.abs().max()
