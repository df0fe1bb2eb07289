"""int4_gemm for processors with AVX-512 VNNI, in Numba (reference.py defines it)."""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.int4_gemm.avx512 import GROUP, MAX_TOKENS, ROWS, group_bytes, multiply_tile
from kernels.int4_gemm.quantize import quantize_blocks
from kernels.numba_intrinsics import compiled, flat_view
from kernels.panels import even_panels
from kernels.threads import parallel_loops

U = np.uintp
PANEL_TOKENS = 256
"""Tokens that all tiles meet before the next ones come: of 1,536 columns they fill 0.4 MB of the second-level cache."""


def pack_int4(nibbles: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """Q4_1's bytes in the order of avx512.py: [rows, columns / 2] uint8 -> [rows / 16, groups, 320] uint8.

    `scale`, `minimum` [rows, groups] float16. Raises ValueError when rows are no multiple of 16.
    """
    return _pack(nibbles.view(*scale.shape, GROUP // 2), scale, minimum)


def pack_int8(q: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """The same for whole numbers of 0 .. 255: [rows, columns] uint8 -> [rows / 16, groups, 576] uint8."""
    return _pack(q.view(*scale.shape, GROUP), scale, minimum)


def _pack(grouped: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """[rows, groups, bytes] uint8, scale and minimum [rows, groups] -> [rows / 16, groups, bytes of a tile] uint8."""
    rows, groups, size = grouped.shape
    if rows % ROWS:
        raise ValueError(f"{rows} rows are not a multiple of {ROWS}")
    tiles = rows // ROWS
    packed = torch.empty(tiles, groups, ROWS * size + 4 * ROWS, dtype=torch.uint8)
    packed[..., : ROWS * size] = grouped.view(tiles, ROWS, groups, size // 4, 4).permute(0, 2, 3, 1, 4).flatten(2)
    pair = torch.stack([scale, minimum]).view(2, tiles, ROWS, groups).permute(1, 3, 0, 2).contiguous()
    packed[..., ROWS * size :] = pair.view(torch.uint8).flatten(2)
    return packed


def int4_gemm(x: Tensor, packed: Tensor) -> Tensor:
    """[num_tokens, columns] and what `pack_int4` or `pack_int8` gave -> [num_tokens, rows] float32."""
    tiles, groups, size = packed.shape
    out = torch.empty(len(x), tiles * ROWS)
    gemm = gemm_int4 if size == group_bytes(4) else gemm_int8
    with parallel_loops():
        gemm(packed.data_ptr(), tiles, groups, flat_view(x.float().contiguous()), len(x), flat_view(out))
    return out


def _compile_gemm(bits: int) -> Any:
    """The product for one width of weights: both are compiled from these lines."""
    size = group_bytes(bits)

    @compiled(parallel=True)
    def gemm(packed, tiles, groups, x, num_tokens, out):
        """packed: address of [tiles, groups, size] bytes; x [num_tokens * groups * 32], out [num_tokens * tiles * 16].

        A tile stays in the first-level cache while a panel of tokens passes by, up to 16 at a time.
        """
        numbers = np.empty(num_tokens * groups * GROUP, np.int8)
        scales = np.empty(num_tokens * groups * 2, np.float32)
        if num_tokens <= MAX_TOKENS:  # waking the other threads would take longer
            quantize_blocks(x, 0, num_tokens, groups, numbers, scales)
        else:
            for block in prange((num_tokens + MAX_TOKENS - 1) // MAX_TOKENS):
                first = block * MAX_TOKENS
                quantize_blocks(x, first, min(first + MAX_TOKENS, num_tokens), groups, numbers, scales)
        columns, stride, tile_size = U(groups), U(tiles * ROWS), U(groups * size)
        panels, panel_tokens = even_panels(num_tokens, PANEL_TOKENS)
        for item in prange(panels * tiles):
            panel, tile = U(item) // U(tiles), U(item) % U(tiles)
            t = panel * U(panel_tokens)
            end = min(t + U(panel_tokens), U(num_tokens))
            at, here = tile * U(ROWS), U(packed) + tile * tile_size
            while t + U(16) <= end:
                multiply_tile(here, numbers, scales, t, columns, out, t * stride + at, stride, bits, 16)
                t += U(16)
            if t + U(8) <= end:
                multiply_tile(here, numbers, scales, t, columns, out, t * stride + at, stride, bits, 8)
                t += U(8)
            if t + U(4) <= end:
                multiply_tile(here, numbers, scales, t, columns, out, t * stride + at, stride, bits, 4)
                t += U(4)
            if t + U(2) <= end:
                multiply_tile(here, numbers, scales, t, columns, out, t * stride + at, stride, bits, 2)
                t += U(2)
            if t < end:
                multiply_tile(here, numbers, scales, t, columns, out, t * stride + at, stride, bits, 1)

    return gemm


gemm_int4, gemm_int8 = _compile_gemm(4), _compile_gemm(8)
