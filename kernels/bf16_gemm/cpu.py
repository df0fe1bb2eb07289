"""bf16_gemm for processors with AVX-512 BF16, in Numba (reference.py defines it)."""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.bf16_gemm.avx512 import MAX_TOKENS, ROWS, multiply_tile
from kernels.numba_intrinsics import compiled, flat_view, narrow, widen
from kernels.panels import even_panels
from kernels.threads import parallel_loops

U = np.uintp
PANEL_BYTES = 2**18
"""Of the tokens that all tiles meet before the next ones come: a quarter of the second-level cache."""


def pack_tiles(weight: Tensor) -> Tensor:
    """[rows, columns] -> [rows / 32, columns / 2, 32, 2] bfloat16. Raises ValueError for what fills no tile."""
    rows, columns = weight.shape
    if rows % ROWS or columns % 2:
        raise ValueError(f"{rows} rows of {columns} columns do not fill tiles of {ROWS} rows and 2 columns")
    return weight.bfloat16().view(rows // ROWS, ROWS, columns // 2, 2).transpose(1, 2).contiguous()


def bf16_gemm(x: Tensor, tiles: Tensor) -> Tensor:
    """[num_tokens, columns] and what `pack_tiles` gave -> [num_tokens, rows] float32."""
    num_tiles, pairs, _, _ = tiles.shape
    out = torch.empty(len(x), num_tiles * ROWS)
    with parallel_loops():
        gemm_tiles(tiles.data_ptr(), num_tiles, pairs, flat_view(x.contiguous()), len(x), flat_view(out))
    return out


@compiled(parallel=True)
def gemm_tiles(packed, tiles, pairs, x, num_tokens, out):
    """packed: address of [tiles, pairs, 32, 2] bfloat16; x [num_tokens * 2 * pairs], out [num_tokens * tiles * 32].

    Up to 8 tokens at a time pass by a tile, and a panel of tokens by all tiles.
    """
    numbers = np.empty(num_tokens * pairs, np.int32)
    if num_tokens <= MAX_TOKENS:  # waking the other threads would take longer
        _pair_up(x, 0, num_tokens, pairs, numbers)
    else:
        for block in prange((num_tokens + MAX_TOKENS - 1) // MAX_TOKENS):
            first = block * MAX_TOKENS
            _pair_up(x, first, min(first + MAX_TOKENS, num_tokens), pairs, numbers)
    columns, stride, tile_size = U(pairs), U(tiles * ROWS), U(pairs * 4 * ROWS)
    panels, panel_tokens = even_panels(num_tokens, PANEL_BYTES // (4 * pairs))
    for item in prange(panels * tiles):
        panel, tile = U(item) // U(tiles), U(item) % U(tiles)
        t = panel * U(panel_tokens)
        end = min(t + U(panel_tokens), U(num_tokens))
        at, here = tile * U(ROWS), U(packed) + tile * tile_size
        while t + U(8) <= end:
            multiply_tile(here, numbers, t, columns, out, t * stride + at, stride, 8)
            t += U(8)
        if t + U(4) <= end:
            multiply_tile(here, numbers, t, columns, out, t * stride + at, stride, 4)
            t += U(4)
        if t + U(2) <= end:
            multiply_tile(here, numbers, t, columns, out, t * stride + at, stride, 2)
            t += U(2)
        if t < end:
            multiply_tile(here, numbers, t, columns, out, t * stride + at, stride, 1)


@numba.njit(inline="always")
def _pair_up(x, first, end, pairs, numbers):
    """Tokens first .. end - 1 in bfloat16, block after block: a block of `count` tokens is [pairs, count]."""
    while first < end:
        left = end - first
        count = 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1
        start = U(first) * U(pairs)
        for t in range(U(count)):
            row = U(2) * (start + t * U(pairs))
            for pair in range(U(pairs)):
                low = np.uint32(narrow(np.uint16(0), widen(x[row + U(2) * pair])))
                high = np.uint32(narrow(np.uint16(0), widen(x[row + U(2) * pair + U(1)])))
                numbers[start + pair * U(count) + t] = np.int32(low | (high << np.uint32(16)))
        first += count
