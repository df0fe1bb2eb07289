"""The Llama-family transformer over a paged KV cache, operation by operation: the version to read.

On a CPU with packed weights (the embedded model, on a processor with AVX-512) steps run the same operations as one
compiled call instead: engine/model/compiled_steps.py over kernels/decoder_layers. On a GPU decode steps replay this
code as CUDA graphs. tests/model/test_compiled_steps.py holds the compiled layers equal to these, layer by layer.

There is no batch dimension and no padding: a step is one flat row of tokens, and `query_start_loc` says where
each sequence begins. Only attention looks across tokens, through the block table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.i18n import _
from engine.model.config import ModelConfig
from engine.model.kv_store import KVStore
from engine.model.linear import Embedding, Linear
from engine.model.load_report import ModelLoadError
from engine.model.rotary import Rotation, compute_inv_freq, rotation_at
from engine.model.weights.source import WeightSource


@dataclass(frozen=True)
class ModelInputs:
    """One step as tensors: made in CPU memory, and all on the model's device when it runs."""

    input_ids: Tensor  # [num_tokens] int64
    positions: Tensor  # [num_tokens] int64
    slot_mapping: Tensor  # [num_tokens] int64, -1 writes nothing
    block_table: Tensor  # [num_seqs, max_blocks_per_seq] int32
    seq_lens: Tensor  # [num_seqs] int32, this step's tokens included
    query_start_loc: Tensor  # [num_seqs + 1] int32
    logits_indices: Tensor  # [num_logit_rows] int64: the tokens whose next token is wanted
    max_query_len: int  # the most tokens of one sequence


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
    lm_head: Linear
    inv_freq: Tensor  # [head_dim / 2] float32

    def forward(self, inputs: ModelInputs, kv_store: KVStore) -> Tensor:
        """Write the step's keys and values into `kv_store`; return hidden states [num_tokens, hidden_size]."""
        hidden = self.embedding(inputs.input_ids).to(self.dtype)
        rotation = rotation_at(inputs.positions, self.inv_freq)
        backend, eps = kv_store.backend, self.config.rms_norm_eps
        # Adding a block's output and normalising the sum for the next block are one operation, here and in vLLM.
        norm = backend.rms_norm(hidden, self.layers[0].attention_norm, eps)
        for index, layer in enumerate(self.layers):
            read = self._attend(index, norm, rotation, inputs, kv_store)
            norm, hidden = backend.add_rms_norm(read, hidden, layer.mlp_norm, eps)
            out = layer.down(backend.silu_mul(layer.gate_up(norm)))  # the gated MLP block
            if index + 1 < len(self.layers):
                norm, hidden = backend.add_rms_norm(out, hidden, self.layers[index + 1].attention_norm, eps)
        return hidden + out

    def next_token_logits(self, inputs: ModelInputs, kv_store: KVStore) -> Tensor:
        """`forward`, and the scores after the tokens in `logits_indices`: [num_logit_rows, vocab_size] float32."""
        return self.compute_logits(self.forward(inputs, kv_store)[inputs.logits_indices])

    def compute_logits(self, hidden: Tensor) -> Tensor:
        """Scores of every next token: [rows, hidden_size] -> [rows, vocab_size] float32."""
        weight = self.final_norm.to(hidden.dtype)
        norm = F.rms_norm(hidden, (self.config.hidden_size,), weight, self.config.rms_norm_eps)
        return self.lm_head(norm).float()

    def _attend(self, index: int, norm: Tensor, rotation: Rotation, inputs: ModelInputs, kv_store: KVStore) -> Tensor:
        """The attention block, without the residual: [num_tokens, hidden_size], normalised -> the same shape."""
        config, layer, backend = self.config, self.layers[index], kv_store.backend
        key_cache, value_cache = kv_store.layer(index)
        qkv = layer.qkv(norm)
        qkv = self._normalise_heads(layer, qkv.view(len(norm), -1, config.head_dim))
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
            max_query_len=inputs.max_query_len,
        )
        return layer.attention_output(read.flatten(1))

    def _normalise_heads(self, layer: DecoderLayer, qkv: Tensor) -> Tensor:
        """Qwen3 normalises queries and keys, [num_tokens, num_heads + 2 * num_kv_heads, head_dim], head by head."""
        if layer.qk_norm is None:
            return qkv
        num_normalised = len(layer.qk_norm)
        heads = F.rms_norm(qkv[:, :num_normalised], (self.config.head_dim,), eps=self.config.rms_norm_eps)
        return torch.cat([heads * layer.qk_norm, qkv[:, num_normalised:]], dim=1)


def build_model(config: ModelConfig, source: WeightSource) -> LlamaModel:
    """Ask `source` for every weight of `config`. Raises ModelLoadError when one is missing or misshapen."""
    embedding, lm_head = source.embedding_and_lm_head()
    return LlamaModel(
        config=config,
        dtype=source.dtype,
        device=source.device,
        embedding=embedding,
        layers=tuple(_build_layer(config, source, f"model.layers.{i}") for i in range(config.num_layers)),
        final_norm=_norm_weight(source, "model.norm"),
        lm_head=lm_head,
        inv_freq=compute_inv_freq(config.rope, config.head_dim).to(source.device),
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
    """[hidden_size]. Raises ModelLoadError when it is missing."""
    weight = source.vector(name)
    if weight is None:
        raise ModelLoadError(
            _("The checkpoint has no tensor named {name}.weight; it may be incomplete.").format(name=name)
        )
    return weight


def _qk_norm(config: ModelConfig, source: WeightSource, attention: str) -> Tensor | None:
    """[num_heads + num_kv_heads, head_dim]: Qwen3 normalises query and key heads before rotating. Else None."""
    query, key = source.vector(f"{attention}.q_norm"), source.vector(f"{attention}.k_norm")
    if query is None or key is None:
        return None
    return torch.stack([query] * config.num_heads + [key] * config.num_kv_heads)
