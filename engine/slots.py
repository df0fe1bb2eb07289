"""Where tokens live in the pool: the one piece of arithmetic that a block table exists for."""

from __future__ import annotations

from collections.abc import Sequence


def slots_of(block_table: Sequence[int], start: int, end: int, block_size: int) -> list[int]:
    """Slots of positions start .. end - 1: `block_table[position // B] * B + position % B`."""
    return [block_table[position // block_size] * block_size + position % block_size for position in range(start, end)]
