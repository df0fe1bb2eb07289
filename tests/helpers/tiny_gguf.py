"""A GGUF file of a few kilobytes in the very form of the embedded one, and the weights it stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import dequantize, quantize
from tokenizers import pre_tokenizers
from torch import Tensor

Array = np.ndarray
HIDDEN, INTERMEDIATE, LAYERS, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 64, 96, 2, 4, 2, 16, 272

GGUF_NAMES = {
    "self_attn.q_proj": ("attn_q", HEADS * HEAD_DIM, HIDDEN),
    "self_attn.k_proj": ("attn_k", KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj": ("attn_v", KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj": ("attn_output", HIDDEN, HEADS * HEAD_DIM),
    "mlp.gate_proj": ("ffn_gate", INTERMEDIATE, HIDDEN),
    "mlp.up_proj": ("ffn_up", INTERMEDIATE, HIDDEN),
    "mlp.down_proj": ("ffn_down", HIDDEN, INTERMEDIATE),
}


def write_tiny_gguf(file: Path) -> dict[str, Tensor]:
    """Write the file; return its weights under Hugging Face names, dequantised by the gguf package."""
    random = np.random.default_rng(5)
    writer = GGUFWriter(file, "llama")
    _write_settings(writer)
    _write_tokenizer(writer)
    weights = {"model.embed_tokens.weight": _write_matrix(writer, "token_embd", random, VOCAB, HIDDEN, eight_bits=True)}
    weights["model.norm.weight"] = _write_norm(writer, "output_norm", random)
    for layer in range(LAYERS):
        ours, theirs = f"model.layers.{layer}", f"blk.{layer}"
        weights[f"{ours}.input_layernorm.weight"] = _write_norm(writer, f"{theirs}.attn_norm", random)
        weights[f"{ours}.post_attention_layernorm.weight"] = _write_norm(writer, f"{theirs}.ffn_norm", random)
        for name, (short, rows, columns) in GGUF_NAMES.items():
            weights[f"{ours}.{name}.weight"] = _write_matrix(writer, f"{theirs}.{short}", random, rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def _write_settings(writer: GGUFWriter) -> None:
    writer.add_vocab_size(VOCAB)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_context_length(128)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)


def _write_tokenizer(writer: GGUFWriter) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    marks = ["<unk>", "<bos>", "<eos>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*marks, *alphabet, "th"])
    writer.add_token_types([TokenType.CONTROL] * len(marks) + [TokenType.NORMAL] * (len(alphabet) + 1))
    writer.add_token_merges(["t h"])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}{{ eos_token }}{% endfor %}")


def _write_norm(writer: GGUFWriter, name: str, random: np.random.Generator) -> Tensor:
    norm = (1 + 0.3 * random.standard_normal(HIDDEN)).astype(np.float32)
    writer.add_tensor(f"{name}.weight", norm)
    return torch.from_numpy(norm)


def _write_matrix(
    writer: GGUFWriter, name: str, random: np.random.Generator, rows: int, columns: int, eight_bits: bool = False
) -> Tensor:
    kind = GGMLQuantizationType.Q8_0 if eight_bits else GGMLQuantizationType.Q4_1
    packed = quantize((0.2 * random.standard_normal((rows, columns))).astype(np.float32), kind)
    writer.add_tensor(f"{name}.weight", _gguf_row_order(packed, name), raw_dtype=kind)
    return torch.from_numpy(dequantize(packed, kind))


def _gguf_row_order(packed: Array, name: str) -> Array:
    """llama.cpp stores Q and K with the two halves that a rotation pairs interleaved, head by head."""
    heads = HEADS if name.endswith("attn_q") else KV_HEADS if name.endswith("attn_k") else None
    if heads is None:
        return packed
    rows, width = packed.shape
    return packed.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)
