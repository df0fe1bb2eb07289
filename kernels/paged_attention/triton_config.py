"""How the attention kernels are cut, in one small table an architecture. Imports no Triton.

What bounds each number:

- Prefill multiplies rows x keys x head_dim for (rows + 2 keys) x head_dim elements read: large tiles keep the
  tensor cores fed. Hopper and Blackwell multiply 64 or 128 rows at once.
- Decode reads each key once for a handful of rows. Only bytes in flight count: small tiles, few registers, several
  programs on each multiprocessor.
- Registers: an output tile is rows x head_dim float32 over 32 * num_warps threads of at most 255 registers.
- Shared memory: the tiles of keys and values in flight must fit in 163 KiB (Ampere), 227 KiB (Hopper, Blackwell) or
  64 KiB (AMD, Turing). The Ampere entries stay under the 99 KiB of consumer cards, which use them too.
- On Turing Triton has no tensor cores (triton pull request 5066): products run on the ordinary units, out of
  registers, so tiles are small.
- On MI200 and MI300 each masked load costs scalar registers; 32 keys are as many as those hold.
- RDNA has 256 registers a thread where MI300 has 512, and no matrix unit for float32: tiles are a quarter as large.

Every entry was compiled, with and without a window and for groups of 1, 3, 4 and 7, and taken only if no register
spilled; `python -m benchmarks.kernel_resources` shows the outcome on every chip, with what spills in spite of that
and why. None has been tuned by timing on a card.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import ceil

import torch

MIN_SPLIT_KEYS = 512
"""Keys. A shorter split would read less memory than its partial result and the merge cost."""
MAX_SPLITS = 64
INTERPRETER = "interpreter"


@dataclass(frozen=True)
class Tiles:
    """How one kernel is cut: query rows and keys of a tile, and how many warps and pipeline stages run it."""

    rows: int
    keys: int
    num_warps: int
    num_stages: int


# Keyed by (bytes of an element, head_dim padded to a power of two); narrower heads use the entry for 64.
Table = dict[tuple[int, int], Tiles]

_PREFILL_FLOAT32: Table = {(4, 64): Tiles(32, 32, 8, 2), (4, 128): Tiles(32, 32, 8, 2), (4, 256): Tiles(32, 16, 8, 2)}
_PREFILL_AMPERE: Table = {
    (2, 64): Tiles(128, 64, 8, 3), (2, 128): Tiles(128, 32, 8, 3), (2, 256): Tiles(64, 32, 8, 3), **_PREFILL_FLOAT32
}  # fmt: skip
_PREFILL_HOPPER: Table = {
    (2, 64): Tiles(128, 128, 8, 2), (2, 128): Tiles(128, 64, 8, 3), (2, 256): Tiles(64, 64, 8, 2),
    **_PREFILL_FLOAT32, (4, 64): Tiles(64, 32, 8, 2),
}  # fmt: skip
PREFILL: dict[str, Table] = {
    "cuda75": {
        (2, 64): Tiles(32, 32, 8, 1), (2, 128): Tiles(32, 32, 8, 1), (2, 256): Tiles(32, 16, 8, 1),
        (4, 64): Tiles(32, 32, 8, 1), (4, 128): Tiles(32, 16, 8, 1), (4, 256): Tiles(16, 16, 8, 1),
    },
    "cuda80": _PREFILL_AMPERE,
    "cuda90": _PREFILL_HOPPER,
    "cuda100": _PREFILL_HOPPER,
    "cuda120": _PREFILL_AMPERE,
    "gfx942": {
        (2, 64): Tiles(128, 32, 4, 2), (2, 128): Tiles(64, 32, 4, 2), (2, 256): Tiles(64, 16, 4, 2),
        (4, 64): Tiles(64, 32, 4, 2), (4, 128): Tiles(32, 16, 4, 2), (4, 256): Tiles(32, 16, 4, 2),
    },
    "rdna": {
        (2, 64): Tiles(32, 32, 4, 1), (2, 128): Tiles(32, 16, 4, 1), (2, 256): Tiles(16, 16, 8, 1),
        (4, 64): Tiles(32, 16, 4, 1), (4, 128): Tiles(16, 16, 8, 1), (4, 256): Tiles(16, 16, 8, 1),
    },
}  # fmt: skip

_DECODE_CUDA: Table = {
    (2, 64): Tiles(16, 64, 4, 3), (2, 128): Tiles(16, 64, 4, 3), (2, 256): Tiles(16, 32, 4, 3),
    (4, 64): Tiles(16, 32, 4, 3), (4, 128): Tiles(16, 32, 8, 3), (4, 256): Tiles(16, 16, 8, 3),
}  # fmt: skip
DECODE: dict[str, Table] = {
    "cuda75": {
        (2, 64): Tiles(16, 32, 4, 1), (2, 128): Tiles(16, 32, 4, 1), (2, 256): Tiles(16, 16, 8, 1),
        (4, 64): Tiles(16, 32, 4, 1), (4, 128): Tiles(16, 16, 8, 1), (4, 256): Tiles(16, 16, 8, 1),
    },
    "cuda80": _DECODE_CUDA,
    "cuda90": _DECODE_CUDA,
    "cuda100": _DECODE_CUDA,
    "cuda120": _DECODE_CUDA | {(2, 128): Tiles(16, 32, 4, 3)},
    "gfx942": {
        (2, 64): Tiles(16, 32, 4, 2), (2, 128): Tiles(16, 32, 4, 2), (2, 256): Tiles(16, 32, 4, 2),
        (4, 64): Tiles(16, 32, 4, 2), (4, 128): Tiles(16, 32, 4, 2), (4, 256): Tiles(16, 16, 4, 2),
    },
    "rdna": {
        (2, 64): Tiles(16, 32, 4, 1), (2, 128): Tiles(16, 16, 4, 1), (2, 256): Tiles(16, 16, 8, 1),
        (4, 64): Tiles(16, 16, 4, 1), (4, 128): Tiles(16, 16, 8, 1), (4, 256): Tiles(16, 16, 8, 1),
    },
}  # fmt: skip

# The interpreter runs one NumPy operation for every line of a kernel: few large tiles are its fast ones.
_ALL_SIZES = [(size, dim) for size in (2, 4) for dim in (64, 128, 256)]
PREFILL[INTERPRETER] = dict.fromkeys(_ALL_SIZES, Tiles(32, 32, 1, 1))
DECODE[INTERPRETER] = dict.fromkeys(_ALL_SIZES, Tiles(16, 64, 1, 1))


def tiles_for(tables: dict[str, Table], architecture: str, element_size: int, padded_dim: int, group: int) -> Tiles:
    """The entry of `tables`, with rows for at least one whole group of query heads.

    Raises ValueError for a head_dim that no entry covers.
    """
    if padded_dim > 256:
        raise ValueError(f"the triton attention kernels take head_dim up to 256, not {padded_dim}")
    tiles = tables[architecture][element_size, max(64, padded_dim)]
    return replace(tiles, rows=max(tiles.rows, next_power_of_two(group)))


def precision_of(architecture: str, padded_dim: int) -> str:
    """How float32 products are taken; products of narrower types are exact whatever this says.

    NVIDIA's tensor cores multiply float32 as three products of 19-bit parts, as exact as float32 itself to a few
    units in the last place; but the parts of a head_dim of 256 do not fit in the registers. AMD's multiply float32
    as it is.
    """
    return "tf32x3" if architecture.startswith("cuda") and padded_dim <= 128 else "ieee"


def num_splits(num_programs: int, max_keys: int, num_multiprocessors: int) -> int:
    """How many ways to split each sequence's keys: enough to give every multiprocessor two programs.

    `num_programs` is what runs without a split, `max_keys` the most keys that a block table can hold. Both are
    known from shapes alone, so the choice costs no wait for the GPU and stays fixed in a CUDA graph.
    """
    wanted = next_power_of_two(ceil(2 * num_multiprocessors / num_programs))
    useful = next_power_of_two(max(1, max_keys // MIN_SPLIT_KEYS))
    return min(wanted, useful, MAX_SPLITS)


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is not below `n` (1 or more)."""
    return 1 << (n - 1).bit_length()


@cache
def architecture_of(device: torch.device) -> str:
    """The tables for a device."""
    if device.type == "cpu":
        return INTERPRETER
    if torch.version.hip:
        return tables_of_amd(torch.cuda.get_device_properties(device).gcnArchName)
    return tables_of_nvidia(torch.cuda.get_device_capability(device))


def tables_of_nvidia(capability: tuple[int, int]) -> str:
    """The tables for a compute capability. One that is not known multiplies and stores like Ampere."""
    return {7: "cuda75", 9: "cuda90", 10: "cuda100", 12: "cuda120"}.get(capability[0], "cuda80")


def tables_of_amd(architecture: str) -> str:
    """The tables for a chip as its driver names it, `gfx942:sramecc+:xnack-`: gfx9 is CDNA, what is later is RDNA."""
    return "gfx942" if architecture.startswith("gfx9") else "rdna"


@cache
def multiprocessors_of(device: torch.device) -> int:
    """How many programs run at once, at one a multiprocessor. The interpreter pretends to a few."""
    return 8 if device.type == "cpu" else torch.cuda.get_device_properties(device).multi_processor_count
