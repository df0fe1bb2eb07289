"""How large a KV cache is: bytes a token for the running model and a few well-known ones, and what fits on a card.

Sizes here count as memory is sold and as the paper counts: 1 KB is 1024 bytes, 1 GB is 1024 ** 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.i18n import _
from engine.model.config import ModelConfig

BYTES_PER_GB = 1024**3
HALF_PRECISION = 2
"""Bytes of one number in float16 or bfloat16."""


def kv_bytes_per_token(num_layers: int, num_kv_heads: int, head_dim: int, bytes_per_element: float) -> float:
    """One key and one value a layer and KV head: `2 * layers * kv_heads * head_dim * bytes` (paper, section 3)."""
    return 2 * num_layers * num_kv_heads * head_dim * bytes_per_element


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The numbers of a model that decide what its cache costs.

    `max_model_len`: positions the model was made for. `source` names where the numbers are from.
    """

    name: str
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_model_len: int
    num_parameters: int
    source: str

    @classmethod
    def of(cls, name: str, config: ModelConfig) -> ModelFacts:
        """The facts of a model that is loaded, from its own configuration."""
        return cls(
            name=name,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            max_model_len=config.max_position_embeddings,
            num_parameters=config.num_parameters,
            source="the model's own configuration",
        )

    @property
    def queries_per_kv_head(self) -> int:
        """How many query heads read the same keys and values: 1 when every head has its own."""
        return self.num_heads // self.num_kv_heads

    def kv_bytes_per_token(self, bytes_per_element: int = HALF_PRECISION) -> int:
        """What all layers store for one token."""
        return int(kv_bytes_per_token(self.num_layers, self.num_kv_heads, self.head_dim, bytes_per_element))

    def kv_bytes(self, num_tokens: int, bytes_per_element: int = HALF_PRECISION) -> int:
        """Bytes of keys and values of `num_tokens` tokens."""
        return num_tokens * self.kv_bytes_per_token(bytes_per_element)


@dataclass(frozen=True, slots=True)
class CardFit:
    """What one card holds: all in bytes but `num_tokens`, the tokens whose keys and values fit beside the weights.

    `usable_bytes` is the share of the card that a server may fill. With weights that do not fit, `kv_bytes` is 0.
    """

    card_bytes: int
    usable_bytes: int
    weight_bytes: int
    kv_bytes: int
    kv_bytes_per_token: int
    num_tokens: int

    @property
    def weights_fit(self) -> bool:
        """Whether the weights fit into the usable part of the card."""
        return self.weight_bytes <= self.usable_bytes

    def num_requests(self, num_tokens_each: int) -> int:
        """How many requests of that many tokens the cache holds at once."""
        return self.num_tokens // num_tokens_each


def fit_on_card(
    model: ModelFacts,
    card_gb: float,
    *,
    bytes_per_element: int = HALF_PRECISION,
    share: float = 0.9,
    with_weights: bool = True,
) -> CardFit:
    """How many tokens fit on a card of `card_gb` GB, of which a server fills `share`.

    Without weights the answer is that of a card kept for the cache alone; what a model needs while it computes is not
    counted. Raises ValueError when a size is out of range.
    """
    weight_bytes = model.num_parameters * bytes_per_element if with_weights else 0
    usable_bytes, kv_bytes = room_for_cache(card_gb, share, weight_bytes)
    per_token = model.kv_bytes_per_token(bytes_per_element)
    card_bytes = int(card_gb * BYTES_PER_GB)
    return CardFit(card_bytes, usable_bytes, weight_bytes, kv_bytes, per_token, kv_bytes // per_token)


def room_for_cache(card_gb: float, share: float, taken_bytes: int) -> tuple[int, int]:
    """Bytes of a card that a server may fill, and those that are left for the cache when `taken_bytes` are taken.

    Raises ValueError when a size is out of range.
    """
    if not card_gb > 0 or not 0 < share <= 1:
        raise ValueError(
            _("A GPU needs more than 0 GB of memory, and the share of it that is used must be above 0 and at most 1.")
        )
    usable_bytes = int(int(card_gb * BYTES_PER_GB) * share)
    return usable_bytes, max(usable_bytes - taken_bytes, 0)


def size_in_words(num_bytes: int) -> str:
    """`45 KB`, `1.6 GB`: two figures at least, the unit that leaves a number below 1024."""
    amount, unit = float(num_bytes), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    rounded = round(amount, 1) if amount < 100 else round(amount)
    return f"{rounded:g} {unit}"


WELL_KNOWN = (
    ModelFacts("SmolLM2-135M", 30, 9, 3, 64, 8192, 134_515_008, "HuggingFaceTB/SmolLM2-135M-Instruct, config.json"),
    ModelFacts("Qwen2.5-7B", 28, 28, 4, 128, 131_072, 7_615_616_512, "Qwen/Qwen2.5-7B, config.json"),
    ModelFacts("Llama 2 7B", 32, 32, 32, 128, 4096, 6_738_415_616, "meta-llama/Llama-2-7b-hf, config.json"),
    ModelFacts("Llama 3.1 8B", 32, 32, 8, 128, 131_072, 8_030_261_248, "meta-llama/Llama-3.1-8B, config.json"),
    ModelFacts("OPT-13B", 40, 40, 40, 128, 2048, 12_853_473_280, "facebook/opt-13b, config.json; the paper's example"),
    ModelFacts("Llama 3.1 70B", 80, 64, 8, 128, 131_072, 70_553_706_496, "meta-llama/Llama-3.1-70B, config.json"),
)
"""From small to large, as their publishers' configurations say; parameters counted from the same configurations."""
