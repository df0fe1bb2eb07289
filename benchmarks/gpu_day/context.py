"""What a part is given: the device, sizes that suit it, models, the folder for files, and when it will be stopped."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.gpu_day.models import noise_in_the_shape_of_the_embedded, obstacle_to_embedded
from benchmarks.tables import processor_name
from engine.model.device import resolve_device
from engine.model.weights.embedded import EMBEDDED_MODEL
from engine.model.weights.load import LoadedModel, load_model
from engine.model.weights.tiny import TINY_MODEL


@dataclass(frozen=True)
class Sizes:
    """How much is measured. Pairs are (batch, context); `heads` is (query heads, KV heads)."""

    decode_attention: tuple[tuple[int, int], ...]
    prefill_attention: tuple[tuple[int, int], ...]
    heads: tuple[int, int]
    head_dim: int
    rounds: int
    decode_batches: tuple[int, ...]
    decode_context: int
    steps: int
    new_tokens: int
    throughput: tuple[tuple[int, int], ...]
    is_tiny: bool


SIZES = {
    "card": Sizes(
        decode_attention=((32, 2048), (1, 2048), (128, 512)), prefill_attention=((1, 2048), (8, 512)), heads=(9, 3),
        head_dim=64, rounds=7, decode_batches=(1, 4, 16, 64, 256), decode_context=128, steps=30, new_tokens=64,
        throughput=((1, 16), (16, 16), (16, 512)), is_tiny=False,
    ),
    "tiny": Sizes(
        decode_attention=((2, 24),), prefill_attention=((2, 12),), heads=(4, 2), head_dim=16, rounds=1,
        decode_batches=(1, 2), decode_context=6, steps=2, new_tokens=12, throughput=((2, 5),), is_tiny=True,
    ),
}  # fmt: skip


@dataclass
class Context:
    device: torch.device
    sizes: Sizes
    out: Path
    deadline: float = float("inf")
    """By time.monotonic()."""
    _speed_models: dict[str, LoadedModel] = field(default_factory=dict)

    @property
    def on_card(self) -> bool:
        return self.device.type == "cuda"

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.on_card else processor_name()

    @property
    def half(self) -> str:
        """The two-byte number type of this device, by name."""
        if self.on_card and not torch.cuda.is_bf16_supported(including_emulation=False):
            return "float16"
        return "bfloat16"

    @property
    def dtype(self) -> str:
        """What speed is measured in, by name: two bytes on a card, float32 on a CPU."""
        return self.half if self.on_card else "float32"

    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def text_model(self) -> str:
        """The embedded model where its weights are here, else the tiny one."""
        return TINY_MODEL if self.sizes.is_tiny or obstacle_to_embedded() else EMBEDDED_MODEL

    def speed_model(self, dtype: str) -> LoadedModel:
        """The embedded model, or noise in its shape, which is as fast; the tiny one at tiny sizes. Loaded once."""
        if dtype not in self._speed_models:
            if self.sizes.is_tiny or not obstacle_to_embedded():
                loaded = load_model(self.text_model(), dtype=dtype, device=self.device)
            else:
                loaded = noise_in_the_shape_of_the_embedded(dtype, self.device)
            self._speed_models[dtype] = loaded
        return self._speed_models[dtype]

    def release(self) -> None:
        """Give back what the last part held but for the models."""
        gc.collect()
        if self.on_card:
            torch.cuda.empty_cache()


def context_of(out: Path, sizes: str) -> Context:
    """For the device that the engine would choose. `sizes` is a name in SIZES, or `auto`: by the device."""
    device = resolve_device("auto")
    name = sizes if sizes != "auto" else "card" if device.type == "cuda" else "tiny"
    return Context(device, SIZES[name], out)
