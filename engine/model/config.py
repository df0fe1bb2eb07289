"""The shape of a Llama-family model, read from a Hugging Face `config.json` without importing transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.i18n import _
from engine.model.load_report import UnsupportedModelError

HfConfig = Mapping[str, Any]

SUPPORTED_ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
SUPPORTED_ROPE_TYPES = ("default", "linear", "llama3")


@dataclass(frozen=True)
class RopeConfig:
    """Rotary embedding: base, and how positions are stretched beyond the trained length."""

    theta: float = 10_000.0
    rope_type: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192


@dataclass(frozen=True)
class ModelConfig:
    """Everything the forward pass needs to know beside the weights themselves."""

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope: RopeConfig
    tie_word_embeddings: bool
    sliding_windows: tuple[int | None, ...]
    """One entry a layer: how many positions, its own included, a query may look back; None is all of them."""
    checkpoint_dtype: str = "float32"
    eos_token_ids: tuple[int, ...] = ()

    @property
    def max_positions(self) -> int:
        """Tokens a text may have: `linear` says how far it stretches the positions, llama3's limit has that in it."""
        if self.rope.rope_type == "linear":
            return int(self.max_position_embeddings * self.rope.factor)
        return self.max_position_embeddings

    @property
    def q_size(self) -> int:
        """Elements of all query heads of one token."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Elements of all key heads, or value heads, of one token."""
        return self.num_kv_heads * self.head_dim

    def kv_bytes_per_token(self, bytes_per_element: int) -> int:
        """Bytes of keys and values one token holds over all layers (PagedAttention paper, section 3)."""
        return 2 * self.num_layers * self.kv_size * bytes_per_element

    @property
    def num_parameters(self) -> int:
        """Of an unquantised model of this shape, a head tied to the embedding counted once."""
        vocabulary = self.vocab_size * self.hidden_size
        attention = 2 * self.hidden_size * (self.q_size + self.kv_size)
        if self.architecture == "Qwen2ForCausalLM":  # biases of queries, keys and values
            attention += self.q_size + 2 * self.kv_size
        if self.architecture == "Qwen3ForCausalLM":  # norms of queries and keys
            attention += 2 * self.head_dim
        layer = attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size
        tables = vocabulary if self.tie_word_embeddings else 2 * vocabulary
        return tables + self.num_layers * layer + self.hidden_size


def parse_hf_config(config: HfConfig) -> ModelConfig:
    """Read a `config.json`. Raises UnsupportedModelError naming what this engine cannot run."""
    architecture = _supported_architecture(config)
    _refuse_what_would_run_wrong(config)
    num_layers = int(config["num_hidden_layers"])
    num_heads = int(config["num_attention_heads"])
    hidden_size = int(config["hidden_size"])
    return ModelConfig(
        architecture=architecture,
        vocab_size=int(config["vocab_size"]),
        hidden_size=hidden_size,
        intermediate_size=int(config["intermediate_size"]),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=int(config.get("num_key_value_heads") or num_heads),
        head_dim=int(config.get("head_dim") or hidden_size // num_heads),
        max_position_embeddings=int(config["max_position_embeddings"]),
        rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope=_rope(config),
        tie_word_embeddings=bool(config.get("tie_word_embeddings", False)),
        sliding_windows=_sliding_windows(config, architecture, num_layers),
        checkpoint_dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
        eos_token_ids=as_id_tuple(config.get("eos_token_id")),
    )


def as_id_tuple(value: int | Sequence[int] | None) -> tuple[int, ...]:
    """Configs write one end-of-text id, several, or none."""
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _supported_architecture(config: HfConfig) -> str:
    names = config.get("architectures") or [config.get("model_type", "unknown")]
    for name in names:
        if name in SUPPORTED_ARCHITECTURES:
            return str(name)
    raise UnsupportedModelError(
        _("{names} is not an architecture this engine runs. It runs {supported}.").format(
            names=", ".join(map(str, names)), supported=", ".join(SUPPORTED_ARCHITECTURES)
        )
    )


def _refuse_what_would_run_wrong(config: HfConfig) -> None:
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "an unnamed method")
        raise UnsupportedModelError(
            _(
                "These weights are quantized with {method}, which this engine cannot read. Choose the "
                "unquantized version of the model."
            ).format(method=method)
        )
    activation = config.get("hidden_act", "silu")
    if activation != "silu":
        raise UnsupportedModelError(
            _("The activation {activation} is not supported; this engine runs silu.").format(activation=activation)
        )


def _rope(config: HfConfig) -> RopeConfig:
    """Both spellings: `rope_parameters` (transformers 5) and `rope_theta` with `rope_scaling` (before).

    Either may hold settings of their own for each layer type; this engine rotates all layers alike.
    """
    settings = dict(config.get("rope_scaling") or {}) | dict(config.get("rope_parameters") or {})
    by_type = {name: value for name, value in settings.items() if isinstance(value, Mapping)}
    if not by_type:
        return _rope_of(config, settings)
    shared = {name: value for name, value in settings.items() if name not in by_type}
    layer_types = sorted(set(config.get("layer_types") or by_type))
    missing = [name for name in layer_types if name not in by_type]
    if missing:
        names = ", ".join(missing)
        raise UnsupportedModelError(
            _("The rotary embedding of layers of type {names} is not in the config.").format(names=names)
        )
    ropes = {name: _rope_of(config, shared | dict(by_type[name])) for name in layer_types}
    if len(set(ropes.values())) > 1:
        described = "; ".join(f"{name}: {rope.rope_type}, base {rope.theta:g}" for name, rope in ropes.items())
        raise UnsupportedModelError(
            _(
                "The rotary embedding differs between layer types ({described}). This engine runs one for all layers."
            ).format(described=described)
        )
    return ropes[layer_types[0]]


def _rope_of(config: HfConfig, settings: Mapping[str, Any]) -> RopeConfig:
    """`settings` of one rotary embedding; `config` for what they leave out."""
    rope_type = settings.get("rope_type") or settings.get("type") or "default"
    partial = settings.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    if rope_type not in SUPPORTED_ROPE_TYPES or partial != 1.0:
        raise UnsupportedModelError(
            _(
                "The rotary embedding type {rope_type} with partial_rotary_factor {partial} is not "
                "supported. This engine runs {types} over whole heads."
            ).format(rope_type=rope_type, partial=partial, types=", ".join(SUPPORTED_ROPE_TYPES))
        )
    return RopeConfig(
        theta=float(settings.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        rope_type=rope_type,
        factor=float(settings.get("factor", 1.0)),
        low_freq_factor=float(settings.get("low_freq_factor", 1.0)),
        high_freq_factor=float(settings.get("high_freq_factor", 4.0)),
        original_max_position_embeddings=int(
            settings.get("original_max_position_embeddings") or config["max_position_embeddings"]
        ),
    )


def _sliding_windows(config: HfConfig, architecture: str, num_layers: int) -> tuple[int | None, ...]:
    window = config.get("sliding_window")
    switched_on = config.get("use_sliding_window", architecture == "MistralForCausalLM")
    if not window or not switched_on:
        return (None,) * num_layers
    kinds = config.get("layer_types")
    if kinds is None:
        first = int(config.get("max_window_layers", 0)) if architecture.startswith("Qwen") else 0
        kinds = ["full_attention" if i < first else "sliding_attention" for i in range(num_layers)]
    return tuple(int(window) if kind == "sliding_attention" else None for kind in kinds)
