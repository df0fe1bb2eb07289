"""One GGUF file, read once: its settings, its tokenizer, and its weights in Hugging Face's names and row order.

Only what the embedded model needs: architecture `llama`, matrices in Q4_1, the tied embedding in Q8_0, norms in
float32. The quantised numbers are regrouped, never changed.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from engine.i18n import _
from engine.model.quantization import GROUP_SIZE

HF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert_gguf(gguf: Path, folder: Path, weights_file: str) -> None:
    """Write the weights, `config.json` and the tokenizer's files into `folder`."""
    reader = GGUFReader(gguf)
    _save_weights(read_weights(reader), folder / weights_file)
    (folder / "config.json").write_text(json.dumps(read_config(reader), indent=1), "utf-8")
    _save_tokenizer(gguf, folder)


def read_config(reader: GGUFReader) -> dict[str, Any]:
    """The settings as a Hugging Face `config.json` would say them."""

    def setting(key: str) -> Any:
        return reader.fields[key].contents()

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": setting("llama.vocab_size"),
        "hidden_size": setting("llama.embedding_length"),
        "intermediate_size": setting("llama.feed_forward_length"),
        "num_hidden_layers": setting("llama.block_count"),
        "num_attention_heads": setting("llama.attention.head_count"),
        "num_key_value_heads": setting("llama.attention.head_count_kv"),
        "head_dim": setting("llama.rope.dimension_count"),
        "max_position_embeddings": setting("llama.context_length"),
        "rms_norm_eps": float(setting("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": float(setting("llama.rope.freq_base")),
        "tie_word_embeddings": "output.weight" not in {tensor.name for tensor in reader.tensors},
        "dtype": "float32",
        "bos_token_id": setting("tokenizer.ggml.bos_token_id"),
        "eos_token_id": setting("tokenizer.ggml.eos_token_id"),
    }


def read_weights(reader: GGUFReader) -> dict[str, Tensor]:
    """Every tensor under its Hugging Face name.

    A matrix NAME of [rows, columns] becomes NAME.nibbles, NAME.scale, NAME.minimum (Q4_1) or NAME.quantised,
    NAME.scale (Q8_0), as in engine/model/quantization.py; a norm becomes NAME.weight.
    """
    num_heads = {
        "attn_q": int(reader.fields["llama.attention.head_count"].contents()),
        "attn_k": int(reader.fields["llama.attention.head_count_kv"].contents()),
    }
    weights: dict[str, Tensor] = {}
    for tensor in reader.tensors:
        name, short = _hf_name(tensor.name)
        for part, values in _read_tensor(tensor).items():
            rotary = short in num_heads
            weights[f"{name}.{part}"] = _halves_together(values, num_heads[short]) if rotary else values
    return weights


def _save_weights(weights: dict[str, Tensor], file: Path) -> None:
    """Write all tensors, of any shape, as safetensors. Raises OSError when the disk is full."""
    try:
        save_file(weights, file)
    except SafetensorError as error:  # it wraps the system's error in its own
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device", str(file)) from error
        raise


def _save_tokenizer(gguf: Path, folder: Path) -> None:
    """The file's tokenizer and chat template, converted by transformers."""
    from transformers import AutoTokenizer  # slow to import, and needed at the first start only

    AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name).save_pretrained(str(folder))


def _hf_name(gguf_name: str) -> tuple[str, str]:
    """`blk.3.attn_q.weight` -> (`model.layers.3.self_attn.q_proj`, `attn_q`)."""
    *block, short, _weight = gguf_name.split(".")
    prefix = f"model.layers.{block[1]}." if block else ""
    return prefix + HF_NAMES[short], short


def _read_tensor(tensor: Any) -> dict[str, Tensor]:
    """The parts of one GGUF tensor of [rows, columns] (see read_weights)."""
    if tensor.tensor_type == GGMLQuantizationType.F32:
        return {"weight": torch.from_numpy(tensor.data.copy())}
    columns, rows = (int(length) for length in tensor.shape)
    blocks = tensor.data.reshape(rows, columns // GROUP_SIZE, -1)
    if tensor.tensor_type == GGMLQuantizationType.Q4_1:  # scale, minimum, 16 bytes of two halves each
        halves = _as_float16(blocks[..., :4])
        nibbles = torch.from_numpy(blocks[..., 4:].reshape(rows, columns // 2).copy())
        return {"nibbles": nibbles, "scale": halves[..., 0].clone(), "minimum": halves[..., 1].clone()}
    if tensor.tensor_type == GGMLQuantizationType.Q8_0:  # scale, 32 signed bytes
        quantised = torch.from_numpy(blocks[..., 2:].reshape(rows, columns).view(np.int8).copy())
        return {"quantised": quantised, "scale": _as_float16(blocks[..., :2])[..., 0].clone()}
    raise ValueError(
        _("{name} is stored as {stored_as}, which this engine cannot read").format(
            name=tensor.name, stored_as=tensor.tensor_type.name
        )
    )


def _as_float16(raw: np.ndarray[Any, np.dtype[np.uint8]]) -> Tensor:
    """[rows, groups, 2 n] bytes -> [rows, groups, n] float16."""
    return torch.from_numpy(np.ascontiguousarray(raw).view(np.float16))


def _halves_together(rows: Tensor, num_heads: int) -> Tensor:
    """[rows, n] -> the same, rows reordered: undoes GGUF's row order in Q and K.

    There the two halves that a rotation pairs alternate within each head.
    """
    pairs = rows.reshape(num_heads, rows.shape[0] // num_heads // 2, 2, rows.shape[1])
    return pairs.transpose(1, 2).flatten(0, 2).contiguous()
