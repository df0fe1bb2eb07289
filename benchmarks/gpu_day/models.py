"""Which model there is to run where nothing can be fetched: the embedded one, or noise in its shape for timing."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from engine.model.config import ModelConfig, RopeConfig
from engine.model.device import TORCH_DTYPES
from engine.model.llama import build_model
from engine.model.tokenizer import ByteTokenizer
from engine.model.weights.cache import CACHE_VARIABLE, cache_root, is_intact
from engine.model.weights.embedded import CACHE_NAME, EMBEDDED_MODEL
from engine.model.weights.load import LoadedModel
from engine.model.weights.source import DenseSource

EMBEDDED_SHAPE = ModelConfig(
    architecture="LlamaForCausalLM", vocab_size=49152, hidden_size=576, intermediate_size=1536, num_layers=30,
    num_heads=9, num_kv_heads=3, head_dim=64, max_position_embeddings=8192, rms_norm_eps=1e-5,
    rope=RopeConfig(theta=100_000.0), tie_word_embeddings=True, sliding_windows=(None,) * 30, eos_token_ids=(2,),
)  # fmt: skip
"""Of SmolLM2-135M-Instruct, by its `config.json`."""
NEEDED_TO_READ_WEIGHTS = ("safetensors", "tokenizers")


@cache
def obstacle_to_embedded() -> str:
    """Why the embedded model cannot be loaded without a network, as half a sentence; empty when it can."""
    missing = [name for name in NEEDED_TO_READ_WEIGHTS if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} is not installed, which reads the weights"
    try:
        root = cache_root()
    except ModuleNotFoundError:
        return f"{CACHE_VARIABLE} names no folder with the weights"
    return "" if is_intact(root / CACHE_NAME) else f"the weights are not in {root.name}/{CACHE_NAME}, or not whole"


def noise_in_the_shape_of_the_embedded(dtype: str, device: torch.device) -> LoadedModel:
    """As large and as fast as the embedded model; what it writes means nothing."""
    generator = torch.Generator().manual_seed(0)

    def fetch(name: str) -> Tensor | None:
        shape = _shape_of(name, EMBEDDED_SHAPE)
        if shape is None:
            return None
        return torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=generator).mul_(0.02)

    source = DenseSource(fetch, TORCH_DTYPES[dtype], device, EMBEDDED_SHAPE.tie_word_embeddings)
    model = build_model(EMBEDDED_SHAPE, source)
    return LoadedModel(f"noise in the shape of {EMBEDDED_MODEL}", dtype, EMBEDDED_SHAPE, ByteTokenizer(), model)


def _shape_of(name: str, c: ModelConfig) -> tuple[int, ...] | None:
    """Of a tensor by its name in a checkpoint; None for one that this architecture has not."""
    module, _, kind = name.removeprefix("model.").rpartition(".")
    if kind != "weight":
        return None
    return {
        "embed_tokens": (c.vocab_size, c.hidden_size), "norm": (c.hidden_size,),
        "input_layernorm": (c.hidden_size,), "post_attention_layernorm": (c.hidden_size,),
        "q_proj": (c.q_size, c.hidden_size), "k_proj": (c.kv_size, c.hidden_size), "v_proj": (c.kv_size, c.hidden_size),
        "o_proj": (c.hidden_size, c.q_size), "gate_proj": (c.intermediate_size, c.hidden_size),
        "up_proj": (c.intermediate_size, c.hidden_size), "down_proj": (c.hidden_size, c.intermediate_size),
    }.get(module.rsplit(".", 1)[-1])  # fmt: skip
