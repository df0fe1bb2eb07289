"""What the presenter chooses of the shared engine. It travels in their tab, so it is checked when it comes back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from engine.config import EngineConfig
from engine.events import PreemptionMode
from views import live_config

BLOCK_SIZES = (1, 2, 4, 8, 16, 32)
NUMBERS_OF_BLOCKS = range(4, live_config.MAX_BLOCKS + 1)
WAYS: tuple[PreemptionMode, ...] = ("recompute", "swap")


@dataclass(frozen=True)
class RoomSettings:
    block_size: int = 4
    num_blocks: int = 64
    preemption: PreemptionMode = "recompute"

    def config(self, model: str) -> EngineConfig:
        return live_config.live_config(model, self.block_size, self.num_blocks, True, self.preemption)

    def told(self) -> dict[str, Any]:
        return asdict(self)


def settings_from(told: Any) -> RoomSettings:
    """What a tab kept; the defaults for what cannot be."""
    if not isinstance(told, dict):
        return RoomSettings()
    known = RoomSettings()
    block_size, num_blocks, way = (told.get(name) for name in ("block_size", "num_blocks", "preemption"))
    return RoomSettings(
        next((size for size in BLOCK_SIZES if size == block_size), known.block_size),
        next((number for number in NUMBERS_OF_BLOCKS if number == num_blocks), known.num_blocks),
        next((known_way for known_way in WAYS if known_way == way), known.preemption),
    )
