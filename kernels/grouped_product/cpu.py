"""grouped_product for processors with AVX-512 VNNI, in Numba (its twin in reference.py gives the meaning)."""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from kernels.grouped_product.vnni import GROUP, ROWS, group_bytes, multiply_tile
from kernels.numba_math import compiled, flat_view, lasting_view
from kernels.threads import match_threads

U = np.uintp
ZERO, ONE, LARGEST = np.float32(0.0), np.float32(1.0), np.float32(127.0 * 256.0)


def pack_four_bits(nibbles: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """Q4_1's bytes in the order of vnni.py: [rows, columns / 2] uint8 -> [rows / 16, groups, 320] uint8.

    `scale`, `minimum` [rows, groups] float16. Raises ValueError when rows are no multiple of 16.
    """
    return _pack(nibbles.view(*scale.shape, GROUP // 2), scale, minimum)


def pack_eight_bits(q: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """The same for whole numbers of 0 .. 255: [rows, columns] uint8 -> [rows / 16, groups, 576] uint8."""
    return _pack(q.view(*scale.shape, GROUP), scale, minimum)


def _pack(grouped: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    rows, groups, size = grouped.shape
    if rows % ROWS:
        raise ValueError(f"{rows} rows are not a multiple of {ROWS}")
    tiles = rows // ROWS
    packed = torch.empty(tiles, groups, ROWS * size + 4 * ROWS, dtype=torch.uint8)
    packed[..., : ROWS * size] = grouped.view(tiles, ROWS, groups, size // 4, 4).permute(0, 2, 3, 1, 4).flatten(2)
    pair = torch.stack([scale, minimum]).view(2, tiles, ROWS, groups).permute(1, 3, 0, 2).contiguous()
    packed[..., ROWS * size :] = pair.view(torch.uint8).flatten(2)
    return packed


def grouped_product(x: Tensor, packed: Tensor) -> Tensor:
    """[num_tokens, columns] and what `pack_four_bits` or `pack_eight_bits` gave -> [num_tokens, rows] float32."""
    match_threads()
    tiles, groups, size = packed.shape
    out = torch.empty(len(x), tiles * ROWS)
    multiply = _multiply_four_bits if size == group_bytes(4) else _multiply_eight_bits
    multiply(lasting_view(packed), tiles, groups, flat_view(x.float().contiguous()), len(x), flat_view(out))
    return out


@compiled()
def _round_rows(x, numbers, scales):
    """Each group of 32 as numbers of 16 bits, its largest magnitude 127 * 256.

    x [n * 32] -> numbers [n * 2 * 32] int8, high bytes and then low ones, and scales [n * 2]: the scale, and the scale
    times the sum of the numbers.
    """
    for group in range(U(len(scales) // 2)):
        start, high = group * U(GROUP), U(2) * group * U(GROUP)
        largest = ZERO
        for i in range(U(GROUP)):
            largest = max(largest, abs(x[start + i]))
        scale = largest / LARGEST
        factor = ONE / scale if scale > ZERO else ZERO
        total = np.int32(0)
        for i in range(U(GROUP)):
            number = np.int32(np.rint(x[start + i] * factor))
            rest = np.int8(number)  # its low byte, with a sign: the high one makes up for it
            numbers[high + i] = np.int8((number - np.int32(rest)) >> 8)
            numbers[high + U(GROUP) + i] = rest
            total += number
        scales[U(2) * group] = scale
        scales[U(2) * group + U(1)] = scale * np.float32(total)


def _multiplier(bits: int) -> Any:
    """The product for one width of weights: both are compiled from these lines."""
    size = group_bytes(bits)

    @compiled(parallel=True)
    def multiply(packed, tiles, groups, x, num_tokens, out):
        """packed [tiles * groups * size] uint8; x [num_tokens * groups * 32] float32; out [num_tokens * tiles * 16].

        A tile stays in the first-level cache while all tokens pass by, up to eight at a time.
        """
        numbers = np.empty(2 * len(x), np.int8)
        scales = np.empty(len(x) // GROUP * 2, np.float32)
        _round_rows(x, numbers, scales)
        columns, stride = U(groups), U(tiles * ROWS)
        for tile in prange(tiles):
            start, at, t = U(tile * groups * size), U(tile * ROWS), U(0)
            left = num_tokens
            while left >= 8:
                multiply_tile(packed, start, numbers, scales, t, columns, out, t * stride + at, stride, bits, 8)
                t, left = t + U(8), left - 8
            if left >= 4:
                multiply_tile(packed, start, numbers, scales, t, columns, out, t * stride + at, stride, bits, 4)
                t, left = t + U(4), left - 4
            if left >= 2:
                multiply_tile(packed, start, numbers, scales, t, columns, out, t * stride + at, stride, bits, 2)
                t, left = t + U(2), left - 2
            if left >= 1:
                multiply_tile(packed, start, numbers, scales, t, columns, out, t * stride + at, stride, bits, 1)

    return multiply


_multiply_four_bits, _multiply_eight_bits = _multiplier(4), _multiplier(8)
