"""The Llama-family transformer over a paged KV cache: every request's tokens of a step, side by side.

There is no batch dimension and no padding: a step is one flat row of tokens, and `query_start_loc` says where
each sequence begins. Only attention looks across tokens, through the block table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kv_store import KVStore
from engine.linear import Embedding, Linear
from engine.model_config import ModelConfig
from engine.model_errors import ModelLoadError
from engine.rotary import Rotation, inverse_frequencies, rotation_at
from engine.weights_source import WeightSource
from kernels.backend import Backend


@dataclass(frozen=True)
class ModelInputs:
    """One step as tensors, all on the model's device."""

    input_ids: Tensor  # [num_tokens] int64
    positions: Tensor  # [num_tokens] int64
    slot_mapping: Tensor  # [num_tokens] int64, -1 writes nothing
    block_table: Tensor  # [num_seqs, max_blocks_per_seq] int32
    seq_lens: Tensor  # [num_seqs] int32, this step's tokens included
    query_start_loc: Tensor  # [num_seqs + 1] int32
    logits_indices: Tensor  # [num_logit_rows] int64: the tokens whose next token is wanted


@dataclass(frozen=True)
class DecoderLayer:
    """The weights of one layer. Matrices that read the same input are merged into one product."""

    attention_norm: Tensor  # [hidden_size]
    qkv: Linear
    qk_norm: Tensor | None  # [num_heads + num_kv_heads, head_dim], Qwen3 only
    attention_output: Linear
    mlp_norm: Tensor  # [hidden_size]
    gate_up: Linear
    down: Linear


@dataclass(frozen=True)
class LlamaModel:
    """Immutable, so one copy serves every engine of a server; all state is in the KVStore handed in."""

    config: ModelConfig
    dtype: torch.dtype
    """Of the hidden states between the matrix products."""
    device: torch.device
    embedding: Embedding
    layers: tuple[DecoderLayer, ...]
    final_norm: Tensor  # [hidden_size]
    head: Linear
    frequencies: Tensor  # [head_dim / 2] float32

    def forward(self, inputs: ModelInputs, kv_store: KVStore) -> Tensor:
        """Write the step's keys and values into `kv_store`; return hidden states [num_tokens, hidden_size]."""
        hidden = self.embedding(inputs.input_ids).to(self.dtype)
        rotation = rotation_at(inputs.positions, self.frequencies)
        for index in range(len(self.layers)):
            hidden = self._attend(index, hidden, rotation, inputs, kv_store)
            hidden = self._think(index, hidden, kv_store.backend)
        return hidden

    def compute_logits(self, hidden: Tensor) -> Tensor:
        """Scores of every next token: [rows, hidden_size] -> [rows, vocab_size] float32."""
        weight = self.final_norm.to(hidden.dtype)
        norm = F.rms_norm(hidden, (self.config.hidden_size,), weight, self.config.rms_norm_eps)
        return self.head(norm).float()

    def _attend(self, index: int, hidden: Tensor, rotation: Rotation, inputs: ModelInputs, kv_store: KVStore) -> Tensor:
        """Add what each token reads from its own and earlier positions."""
        config, layer, backend = self.config, self.layers[index], kv_store.backend
        key_cache, value_cache = kv_store.layer(index)
        qkv = layer.qkv(backend.rms_norm(hidden, layer.attention_norm, config.rms_norm_eps))
        qkv = self._normalise_heads(layer, qkv.view(len(hidden), -1, config.head_dim))
        query = backend.rotary_write_kv(qkv, *rotation, key_cache, value_cache, inputs.slot_mapping)
        read = backend.paged_attention(
            query,
            key_cache,
            value_cache,
            inputs.block_table,
            inputs.seq_lens,
            inputs.query_start_loc,
            scale=config.head_dim**-0.5,
            sliding_window=config.sliding_windows[index],
        )
        return hidden + layer.attention_output(read.flatten(1))

    def _normalise_heads(self, layer: DecoderLayer, qkv: Tensor) -> Tensor:
        """Qwen3 normalises queries and keys, [num_tokens, num_heads + 2 * num_kv_heads, head_dim], head by head."""
        if layer.qk_norm is None:
            return qkv
        num_normalised = len(layer.qk_norm)
        heads = F.rms_norm(qkv[:, :num_normalised], (self.config.head_dim,), eps=self.config.rms_norm_eps)
        return torch.cat([heads * layer.qk_norm, qkv[:, num_normalised:]], dim=1)

    def _think(self, index: int, hidden: Tensor, backend: Backend) -> Tensor:
        """Add what the gated MLP makes of each token by itself."""
        layer = self.layers[index]
        gate_up = layer.gate_up(backend.rms_norm(hidden, layer.mlp_norm, self.config.rms_norm_eps))
        return hidden + layer.down(backend.silu_mul(gate_up))


def build_model(config: ModelConfig, source: WeightSource) -> LlamaModel:
    """Ask `source` for every weight of `config`. Raises ModelLoadError when one is missing or misshapen."""
    embedding, head = source.embedding_and_head()
    return LlamaModel(
        config=config,
        dtype=source.dtype,
        device=source.device,
        embedding=embedding,
        layers=tuple(_build_layer(config, source, f"model.layers.{i}") for i in range(config.num_layers)),
        final_norm=_norm_weight(source, "model.norm"),
        head=head,
        frequencies=inverse_frequencies(config.rope, config.head_dim).to(source.device),
    )


def _build_layer(config: ModelConfig, source: WeightSource, name: str) -> DecoderLayer:
    attention, mlp = f"{name}.self_attn", f"{name}.mlp"
    return DecoderLayer(
        attention_norm=_norm_weight(source, f"{name}.input_layernorm"),
        qkv=source.linear(f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
        qk_norm=_qk_norm(config, source, attention),
        attention_output=source.linear(f"{attention}.o_proj"),
        mlp_norm=_norm_weight(source, f"{name}.post_attention_layernorm"),
        gate_up=source.linear(f"{mlp}.gate_proj", f"{mlp}.up_proj"),
        down=source.linear(f"{mlp}.down_proj"),
    )


def _norm_weight(source: WeightSource, name: str) -> Tensor:
    weight = source.vector(name)
    if weight is None:
        raise ModelLoadError(f"The checkpoint has no tensor named {name}.weight; it may be incomplete.")
    return weight


def _qk_norm(config: ModelConfig, source: WeightSource, attention: str) -> Tensor | None:
    """Qwen3 normalises each query head and each key head before rotating; others do not."""
    query, key = source.vector(f"{attention}.q_norm"), source.vector(f"{attention}.k_norm")
    if query is None or key is None:
        return None
    return torch.stack([query] * config.num_heads + [key] * config.num_kv_heads)
