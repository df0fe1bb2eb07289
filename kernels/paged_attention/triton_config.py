"""Tile sizes of the attention kernels, one small table an architecture. Imports no Triton.

What bounds each number:
- rows x keys: prefill does rows * keys * head_dim multiply-adds for (rows + 2 * keys) * head_dim elements read, so
  large tiles keep the tensor cores fed. Hopper's and Blackwell's wide instructions need 64 rows a warp group.
- registers: the output tile is rows * head_dim float32, spread over 32 * num_warps threads with at most 255 each.
- shared memory: num_stages tiles of keys and of values wait there while one is in use.
- decode reads each key once for a handful of rows, so only bytes in flight matter: a few stages of small tiles,
  few warps, and several programs on each multiprocessor.
The tables were chosen by compiling (`python -m benchmarks.kernel_resources`): no entry spills a register. They
have not been tuned by timing.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import ceil

import torch

SMALLEST_SPLIT = 256
"""Keys. Below this a split reads less memory than its partial result and the merge cost."""
MOST_SPLITS = 64
SMALLEST_DOT = 16
"""Rows that a tensor core instruction takes at least."""


@dataclass(frozen=True)
class Tiles:
    """How one kernel is cut: query rows and keys of a tile, and how many warps and pipeline stages run it."""

    rows: int
    keys: int
    num_warps: int
    num_stages: int


# Keyed by the most bytes that one padded key row may have: head_dim 64 in bfloat16 is 128 bytes, head_dim 256 in
# float32 is 1,024. Wider rows take the last entry.
Table = dict[int, Tiles]

PREFILL: dict[str, Table] = {
    "cuda80": {128: Tiles(128, 64, 4, 3), 256: Tiles(128, 64, 8, 2), 512: Tiles(64, 32, 4, 2), 1024: Tiles(32, 16, 4, 1)},
    "interpreter": {1024: Tiles(32, 32, 1, 1)},
}
DECODE: dict[str, Table] = {
    "cuda80": {128: Tiles(16, 64, 4, 3), 256: Tiles(16, 64, 4, 3), 512: Tiles(16, 32, 4, 3), 1024: Tiles(16, 16, 4, 2)},
    "interpreter": {1024: Tiles(16, 64, 1, 1)},
}
INTERPRETER = "interpreter"


def tiles_for(tables: dict[str, Table], architecture: str, row_bytes: int, group: int) -> Tiles:
    """The entry for an architecture and a key row, with room for at least one whole group of query heads."""
    table = tables[architecture]
    tiles = table[min((limit for limit in table if limit >= row_bytes), default=max(table))]
    return replace(tiles, rows=max(tiles.rows, next_power_of_two(group)))


def num_splits(num_programs: int, max_keys: int, num_multiprocessors: int) -> int:
    """How many ways to split each sequence's keys: enough to give every multiprocessor two programs.

    `num_programs` is what runs without a split, `max_keys` the most keys that a block table can hold. Both are
    known from shapes alone, so the choice costs no wait for the GPU and stays fixed in a CUDA graph.
    """
    wanted = next_power_of_two(ceil(2 * num_multiprocessors / num_programs))
    useful = next_power_of_two(max(1, max_keys // SMALLEST_SPLIT))
    return min(wanted, useful, MOST_SPLITS)


def next_power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


@cache
def architecture_of(device: torch.device) -> str:
    """The table key for a device; the interpreter's for the CPU."""
    if device.type == "cpu":
        return INTERPRETER
    if torch.version.hip:
        return "gfx942"
    major, minor = torch.cuda.get_device_capability(device)
    known = sorted(int(name.removeprefix("cuda")) for name in DECODE if name.startswith("cuda"))
    return f"cuda{max((k for k in known if k <= 10 * major + minor), default=known[0])}"


@cache
def multiprocessors_of(device: torch.device) -> int:
    """How many programs run at the same time, at one a multiprocessor. The interpreter pretends to a few."""
    if device.type == "cpu":
        return 8
    return torch.cuda.get_device_properties(device).multi_processor_count
