"""The engine of one tab of the live page: what a reader may choose of it, and the limits that all tabs share."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.i18n import N_
from engine.trace.events import PreemptionMode

MAX_SLOTS = 4096
"""Slots in one tab's pool: 190 MB for the embedded model in float32, and as many cells as a page can show."""
MAX_BLOCKS = 512
MAX_NUM_SEQS = 16
WAYS_TO_MAKE_ROOM: dict[str, PreemptionMode] = {N_("Recompute"): "recompute", N_("Swap out"): "swap"}


def num_blocks_within_memory(num_blocks: int, block_size: int) -> int:
    """The number of blocks, less when the pool would be too large for one tab."""
    return max(1, min(num_blocks, MAX_SLOTS // block_size))


def live_config(
    model: str, block_size: int, num_blocks: int, prefix_caching: bool, preemption: PreemptionMode
) -> EngineConfig:
    """`preemption`: what happens to a request that must make room. Swap space is as large as the pool.

    Raises ValueError for a block size or number of blocks that cannot be.
    """
    num_blocks = num_blocks_within_memory(num_blocks, block_size)
    return EngineConfig(
        model=model,
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_seqs=MAX_NUM_SEQS,
        max_model_len=MAX_SLOTS,
        enable_prefix_caching=prefix_caching,
        preemption_mode=preemption,
        num_cpu_blocks=num_blocks if preemption == "swap" else 0,
    )
