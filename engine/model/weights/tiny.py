"""`tiny-random`: a two-layer Llama of seeded noise, made in memory, for tests and as the labelled fallback."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from engine.model.config import ModelConfig, RopeConfig
from engine.model.tokenizer import ByteTokenizer
from engine.model.weights.source import DenseSource, WeightSource

TINY_MODEL = "tiny-random"
SEED = 1

TINY_CONFIG = ModelConfig(
    architecture="LlamaForCausalLM",
    vocab_size=ByteTokenizer.vocab_size,
    hidden_size=64,
    intermediate_size=128,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_position_embeddings=4096,
    rms_norm_eps=1e-5,
    rope=RopeConfig(),
    tie_word_embeddings=False,
    sliding_windows=(None, None),
    eos_token_ids=(ByteTokenizer.eos_token_id,),
)


def tiny_source(dtype: torch.dtype, device: torch.device) -> WeightSource:
    """The same numbers on every machine and at every start."""
    return DenseSource(partial(tiny_weights().get), dtype, device, TINY_CONFIG.tie_word_embeddings)


def tiny_weights() -> dict[str, Tensor]:
    """All weights under Hugging Face names; matrices [out_features, in_features], norms [hidden_size].

    The noise is wide enough that greedy text varies instead of repeating one token.

    The head's bias leaves printable ASCII and the end of text to choose from, so that noise is at least legible.
    """
    generator = torch.Generator().manual_seed(SEED)

    def noise(rows: int, columns: int) -> Tensor:
        """[rows, columns] float32."""
        return torch.randn(rows, columns, generator=generator).mul_(1.5 / math.sqrt(columns))

    c = TINY_CONFIG
    weights = {
        "model.embed_tokens.weight": torch.randn(c.vocab_size, c.hidden_size, generator=generator),
        "lm_head.weight": noise(c.vocab_size, c.hidden_size),
        "lm_head.bias": _only_legible(),
        "model.norm.weight": torch.ones(c.hidden_size),
    }
    for layer in range(c.num_layers):
        name = f"model.layers.{layer}"
        weights |= {
            f"{name}.input_layernorm.weight": torch.ones(c.hidden_size),
            f"{name}.self_attn.q_proj.weight": noise(c.q_size, c.hidden_size),
            f"{name}.self_attn.k_proj.weight": noise(c.kv_size, c.hidden_size),
            f"{name}.self_attn.v_proj.weight": noise(c.kv_size, c.hidden_size),
            f"{name}.self_attn.o_proj.weight": noise(c.hidden_size, c.q_size),
            f"{name}.post_attention_layernorm.weight": torch.ones(c.hidden_size),
            f"{name}.mlp.gate_proj.weight": noise(c.intermediate_size, c.hidden_size),
            f"{name}.mlp.up_proj.weight": noise(c.intermediate_size, c.hidden_size),
            f"{name}.mlp.down_proj.weight": noise(c.hidden_size, c.intermediate_size),
        }
    return weights


def _only_legible() -> Tensor:
    """0 for printable ASCII and the end of text, -30 elsewhere: [vocab_size]."""
    bias = torch.full((TINY_CONFIG.vocab_size,), -30.0)
    bias[ord(" ") : ord("~") + 1] = 0.0
    bias[ByteTokenizer.eos_token_id] = 0.0
    return bias
