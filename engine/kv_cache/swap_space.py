"""Swap space: blocks in CPU memory that hold the keys and values of preempted requests (paper section 4.5)."""

from __future__ import annotations

from collections import deque


class SwapSpace:
    """Allocates CPU blocks. Sequences that share a block on the device share its copy here.

    `tables[seq_id]` lists the CPU blocks of a swapped sequence, in logical order.
    """

    def __init__(self, num_cpu_blocks: int) -> None:
        self.num_cpu_blocks = num_cpu_blocks
        self.free_blocks: deque[int] = deque(range(num_cpu_blocks))
        self.ref_cnts = [0] * num_cpu_blocks
        self.tables: dict[str, list[int]] = {}

    @property
    def num_free_blocks(self) -> int:
        """CPU blocks without a reference."""
        return len(self.free_blocks)

    def allocate(self) -> int:
        """A free CPU block, with no reference yet. Raises IndexError when none is free."""
        return self.free_blocks.popleft()

    def add_reference(self, seq_id: str, cpu_block_id: int) -> None:
        """Append the block to the sequence's CPU table."""
        self.tables.setdefault(seq_id, []).append(cpu_block_id)
        self.ref_cnts[cpu_block_id] += 1

    def release(self, seq_id: str) -> list[int]:
        """Drop the sequence's CPU table, and free the blocks at `ref_cnt` 0. Returns the table it had."""
        table = self.tables.pop(seq_id, [])
        for cpu_block_id in table:
            self.ref_cnts[cpu_block_id] -= 1
            if self.ref_cnts[cpu_block_id] == 0:
                self.free_blocks.append(cpu_block_id)
        return table
