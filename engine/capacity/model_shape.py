"""The layers of a model by what they store: read from any Hugging Face `config.json`, without loading the model.

full       keys and values of every token
sliding    keys and values of the last `window` tokens
latent     one compressed row a token for keys and values together (multi-head latent attention, DeepSeek)
linear     a state of fixed size a request (Gated DeltaNet: Qwen3-Next, Qwen3.5)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from engine.i18n import N_, _
from engine.model.kv_cache_size import ModelFacts, kv_bytes_per_token

LayerKind = Literal["full", "sliding", "latent", "linear"]
Config = Mapping[str, Any]
MOST_LAYERS = 1_000
STATE_BYTES = 4
"""Bytes of one number of a linear-attention state: servers keep it in float32."""
CONV_BYTES = 2
_KINDS: Mapping[str, LayerKind] = {
    "full_attention": "full", "attention": "full", "sliding_attention": "sliding", "chunked_attention": "sliding",
    "linear_attention": "linear",
}  # fmt: skip
_TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
_HALF = ("bfloat16", "float16", "half", "bf16", "fp16")


class ConfigFileError(ValueError):
    """A `config.json` that does not say what a cache stores; the message says what is missing or unknown."""


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """The heads of linear-attention layers: their state is `value_heads * value_dim * key_dim` and a convolution's."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    def state_bytes(self, tensor_parallel: int) -> int:
        """One layer's state of one request, on one of so many GPUs."""
        recurrent = self.value_heads * self.value_dim * self.key_dim * STATE_BYTES
        channels = 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
        return (recurrent + channels * (self.kernel - 1) * CONV_BYTES) // tensor_parallel


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What decides the cache of a model.

    layers: how many of each kind. window: of the sliding ones, in tokens. latent_width: numbers a token of the latent
    ones. num_parameters: estimated from the shape, without norms and biases. weight_bytes_each: bytes of a parameter.
    """

    name: str
    layers: Mapping[LayerKind, int]
    num_kv_heads: int
    head_dim: int
    max_model_len: int
    num_parameters: int
    weight_bytes_each: float = 2.0
    window: int | None = None
    latent_width: int | None = None
    linear: LinearAttention | None = None

    @classmethod
    def of(cls, facts: ModelFacts) -> ModelShape:
        """A well-known model, all of whose layers read every token."""
        return cls(
            facts.name, {"full": facts.num_layers}, facts.num_kv_heads, facts.head_dim, facts.max_model_len,
            facts.num_parameters,
        )  # fmt: skip

    @property
    def num_layers(self) -> int:
        """Layers of all kinds."""
        return sum(self.layers.values())

    @property
    def is_hybrid(self) -> bool:
        """Whether layers of several kinds share the pool."""
        return len(self.layers) > 1

    @property
    def weight_bytes(self) -> int:
        """The weights of all GPUs together, estimated."""
        return int(self.num_parameters * self.weight_bytes_each)

    def kv_heads_on_rank(self, tensor_parallel: int) -> int:
        """KV heads that one GPU keeps: beyond their number each GPU keeps a copy of one."""
        return max(1, self.num_kv_heads // tensor_parallel)

    def token_bytes(self, kind: LayerKind, element_bytes: float, tensor_parallel: int) -> int:
        """Bytes that one layer of that kind stores for one token on one GPU; 0 of a linear one."""
        if kind == "linear":
            return 0
        if kind == "latent":
            return int((self.latent_width or 0) * element_bytes)
        return int(kv_bytes_per_token(1, self.kv_heads_on_rank(tensor_parallel), self.head_dim, element_bytes))


def parse_config(text: str) -> Config:
    """The JSON of a `config.json`. Raises ConfigFileError for anything else."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(_("This is not JSON: {error}").format(error=error)) from None
    if not isinstance(config, dict):
        raise ConfigFileError(_("A config.json holds one object, with the names of the model's settings."))
    return config


def read_shape(config: Config, name: str = "") -> ModelShape:
    """The shape that a `config.json` says. Raises ConfigFileError naming what is missing or not known here."""
    text = next((config[key] for key in _TEXT_CONFIGS if isinstance(config.get(key), Mapping)), config)
    num_layers = _number(text, "num_hidden_layers", "n_layer", "num_layers")
    if num_layers > MOST_LAYERS:
        raise ConfigFileError(_("num_hidden_layers is {n}: more than {most}.").format(n=num_layers, most=MOST_LAYERS))
    num_heads = _number(text, "num_attention_heads", "n_head")
    hidden = _number(text, "hidden_size", "n_embd")
    layers = Counter(_kinds(text, num_layers))
    return ModelShape(
        name=name or str((config.get("architectures") or [config.get("model_type", _("model"))])[0]),
        layers=dict(layers),
        num_kv_heads=_number(text, "num_key_value_heads", "num_attention_heads", "n_head"),
        head_dim=_optional(text, "head_dim") or hidden // num_heads,
        max_model_len=_number(text, "max_position_embeddings", "n_positions", "seq_length"),
        num_parameters=_parameters(text, num_layers, num_heads, hidden),
        weight_bytes_each=_weight_bytes(config, text),
        window=_optional(text, "sliding_window", "attention_chunk_size") if "sliding" in layers else None,
        latent_width=_number(text, "kv_lora_rank") + _number(text, "qk_rope_head_dim") if "latent" in layers else None,
        linear=_linear(text) if "linear" in layers else None,
    )


def _kinds(text: Config, num_layers: int) -> list[LayerKind]:
    if text.get("global_head_dim") or text.get("num_global_key_value_heads"):
        raise ConfigFileError(_("Its kinds of layers have heads of different sizes, which is not known here."))
    if _optional(text, "kv_lora_rank"):
        return ["latent"] * num_layers
    named = text.get("layer_types")
    if isinstance(named, Sequence) and not isinstance(named, str):
        if len(named) != num_layers:
            raise ConfigFileError(
                _("layer_types names {n} layers, num_hidden_layers {count}.").format(n=len(named), count=num_layers)
            )
        unknown = sorted({str(kind) for kind in named} - _KINDS.keys())
        if unknown:
            raise ConfigFileError(_("Layers of type {names} are not known here.").format(names=", ".join(unknown)))
        return [_KINDS[str(kind)] for kind in named]
    interval = _optional(text, "full_attention_interval")
    if interval:
        return ["full" if (i + 1) % interval == 0 else "linear" for i in range(num_layers)]
    pattern = 2 if text.get("model_type") == "gemma2" else _optional(text, "sliding_window_pattern")
    if pattern and _optional(text, "sliding_window"):
        return ["full" if (i + 1) % pattern == 0 else "sliding" for i in range(num_layers)]
    if any(key in text for key in ("mamba_d_state", "ssm_state_size", "attn_layer_period", "hybrid_override_pattern")):
        raise ConfigFileError(_("Layers of type {names} are not known here.").format(names="mamba"))
    is_qwen = str(text.get("model_type", "")).startswith("qwen")  # names a window that no layer uses
    uses_window = _optional(text, "sliding_window") and text.get("use_sliding_window", not is_qwen)
    return ["sliding" if uses_window else "full"] * num_layers


def _linear(text: Config) -> LinearAttention:
    return LinearAttention(
        _number(text, "linear_num_key_heads"),
        _number(text, "linear_num_value_heads"),
        _number(text, "linear_key_head_dim"),
        _number(text, "linear_value_head_dim"),
        _number(text, "linear_conv_kernel_dim"),
    )


def _parameters(text: Config, num_layers: int, num_heads: int, hidden: int) -> int:
    """An estimate: embeddings, attention and feed-forward layers, with all experts of a mixture."""
    head_dim = _optional(text, "head_dim") or hidden // num_heads
    kv_heads = _optional(text, "num_key_value_heads") or num_heads
    attention = 2 * hidden * head_dim * (num_heads + kv_heads)
    experts = _optional(text, "num_experts", "num_local_experts", "n_routed_experts") or 0
    inner = _optional(text, "intermediate_size", "n_inner") or 4 * hidden
    dense = 3 * hidden * inner
    mixture = 0
    if experts:
        width = _optional(text, "moe_intermediate_size") or inner
        shared = _optional(text, "shared_expert_intermediate_size") or width * (
            _optional(text, "n_shared_experts") or 0
        )
        mixture = 3 * hidden * (experts * width + shared) + hidden * experts
    num_dense = (_optional(text, "first_k_dense_replace") or 0) if experts else num_layers
    vocabulary = (_optional(text, "vocab_size") or 0) * hidden
    tables = vocabulary if text.get("tie_word_embeddings") else 2 * vocabulary
    return tables + num_layers * attention + num_dense * dense + (num_layers - num_dense) * mixture


def _weight_bytes(config: Config, text: Config) -> float:
    """Bytes of a parameter, by the quantization or the type that the checkpoint names."""
    quantization = config.get("quantization_config") or text.get("quantization_config") or {}
    method = str(quantization.get("quant_method", "")) if isinstance(quantization, Mapping) else ""
    bits = quantization.get("bits") if isinstance(quantization, Mapping) else None
    if isinstance(bits, int) and 0 < bits <= 16:
        return bits / 8
    if "mxfp4" in method or "nvfp4" in method or method in ("awq", "gptq"):
        return 0.5
    if "fp8" in method or "int8" in method:
        return 1.0
    named = str(text.get("dtype") or text.get("torch_dtype") or config.get("torch_dtype") or "bfloat16")
    return 2.0 if named.removeprefix("torch.") in _HALF else 4.0


def _number(text: Config, *names: str) -> int:
    found = _optional(text, *names)
    if found is None:
        raise ConfigFileError(_(_MISSING).format(name=names[0]))
    return found


def _optional(text: Config, *names: str) -> int | None:
    for name in names:
        value = text.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12:
            return value
    return None


_MISSING = N_("{name} is missing, or is no whole number above 0. A model's config.json has it.")
