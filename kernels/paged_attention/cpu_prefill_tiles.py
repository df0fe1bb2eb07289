"""What prefill attention multiplies: tiles of keys and values, transposed query rows, and weights.

All are float32 or pairs of bfloat16.
A cache of float32 is multiplied as it is. One of bfloat16 is multiplied in uint32 pairs, where the processor
has the instruction (cpu_prefill_gemm.py), and else widened. Which of them is decided when a function is compiled.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

from kernels.numba_intrinsics import INNER, compiled, pack_bf16_pair, widen
from kernels.paged_attention.cpu_decode_avx512 import multiplies_bfloat16
from kernels.paged_attention.cpu_prefill_gemm import ROWS

KEYS = 96
"""Of a tile: a multiple of TILE_ROWS. A panel's scores with them fill half of the first-level cache."""

U = np.uintp
ZERO, HALF = np.float32(0.0), np.uint32(16)


def operand_type(cache):
    """A zero of the type that is multiplied: uint32 pairs of bfloat16 where the processor can, else float32."""


@overload(operand_type)
def _choose_operand_type(cache):
    if cache.dtype == types.uint16 and multiplies_bfloat16():
        return lambda cache: np.uint32(0)
    return lambda cache: np.float32(0.0)


def num_steps(count, operand_type):
    """How many steps `count` elements are: half as many in pairs of bfloat16."""


@overload(num_steps)
def _choose_num_steps(count, operand_type):
    if operand_type == types.uint32:
        return lambda count, operand_type: (count + U(1)) // U(2)
    return lambda count, operand_type: count


def transpose_rows(query, sources, rows, head_dim, panels, to):
    """So many rows to the columns of a panel that starts at `to`: the row of column r starts at sources[r]."""


@overload(transpose_rows, jit_options=INNER)
def _choose_transpose_rows(query, sources, rows, head_dim, panels, to):
    def bf16_pairs(query, sources, rows, head_dim, panels, to):
        _transpose_bf16_pairs(query.view(np.uint32), sources, rows, head_dim, panels, to)

    def float32(query, sources, rows, head_dim, panels, to):
        for i in range(head_dim):
            for r in range(rows):
                panels[to + i * U(ROWS) + r] = query[sources[r] + i]

    return bf16_pairs if panels.dtype == types.uint32 else float32


@compiled(**INNER)
def _transpose_bf16_pairs(bits, sources, rows, head_dim, panels, to):
    for i in range(head_dim // U(2)):
        for r in range(rows):
            at = sources[r] + U(2) * i
            panels[to + i * U(ROWS) + r] = pack_bf16_pair(bits[at], bits[at + U(1)])
    if head_dim % U(2) == U(1):
        for r in range(rows):
            last = pack_bf16_pair(bits[sources[r] + head_dim - U(1)], np.uint32(0))
            panels[to + head_dim // U(2) * U(ROWS) + r] = last


@compiled(**INNER)
def _copy_rows(cache, offsets, part, num_keys, width, keys, stride):
    """Rows of `width` elements; offsets count parts of one."""
    for k in range(num_keys):
        to, start = k * stride, offsets[k] // part
        for i in range(width):
            keys[to + i] = cache[start + i]


def load_keys(cache, offsets, num_keys, padded, head_dim, keys):
    """Copy `num_keys` rows of the cache to keys [padded, steps], the rest of `padded` zeros."""


@overload(load_keys, jit_options=INNER)
def _choose_load_keys(cache, offsets, num_keys, padded, head_dim, keys):
    def bf16_pairs(cache, offsets, num_keys, padded, head_dim, keys):
        stride = U(len(keys) // KEYS)
        if head_dim % U(2) == U(0):
            _copy_rows(cache.view(np.uint32), offsets, U(2), num_keys, stride, keys, stride)
        else:  # which leaves the last half 0
            _copy_rows(cache, offsets, U(1), num_keys, head_dim, keys.view(np.uint16), U(2) * stride)
        fill(keys, num_keys * stride, padded * stride, 0)

    def float32(cache, offsets, num_keys, padded, head_dim, keys):
        for k in range(num_keys):
            for i in range(head_dim):
                keys[k * head_dim + i] = widen(cache[offsets[k] + i])
        fill(keys, num_keys * head_dim, padded * head_dim, ZERO)

    return bf16_pairs if keys.dtype == types.uint32 else float32


def load_values(cache, offsets, num_keys, padded, head_dim, values):
    """Copy `num_keys` rows of the cache to values [steps, element], the rest of `padded`, a multiple of two, zeros."""


@overload(load_values, jit_options=INNER)
def _choose_load_values(cache, offsets, num_keys, padded, head_dim, values):
    def bf16_pairs(cache, offsets, num_keys, padded, head_dim, values):
        stride = U(len(values) // (KEYS // 2))
        for step in range(num_keys // U(2)):
            even, odd = offsets[U(2) * step], offsets[U(2) * step + U(1)]
            for i in range(head_dim):
                values[step * stride + i] = np.uint32(cache[even + i]) | (np.uint32(cache[odd + i]) << HALF)
        if num_keys % U(2) == U(1):
            for i in range(head_dim):
                values[num_keys // U(2) * stride + i] = cache[offsets[num_keys - U(1)] + i]
        fill(values, (num_keys + U(1)) // U(2) * stride, padded // U(2) * stride, 0)

    def float32(cache, offsets, num_keys, padded, head_dim, values):
        stride = U(len(values) // KEYS)
        for k in range(num_keys):
            for i in range(head_dim):
                values[k * stride + i] = widen(cache[offsets[k] + i])
        fill(values, num_keys * stride, padded * stride, ZERO)

    return bf16_pairs if values.dtype == types.uint32 else float32


def pack_weights(scores, count, packed, values):
    """The weights in the type of `values`, as `add_panel` takes them, and how many steps they are."""


@overload(pack_weights, jit_options=INNER)
def _choose_pack_weights(scores, count, packed, values):
    def bf16_pairs(scores, count, packed, values):
        bits, steps = scores.view(np.uint32), count // U(2)
        for k in range(steps):
            for r in range(U(ROWS)):
                at = U(2) * k * U(ROWS) + r
                packed[k * U(ROWS) + r] = pack_bf16_pair(bits[at], bits[at + U(ROWS)])
        return packed, steps

    def float32(scores, count, packed, values):
        return scores, count

    return bf16_pairs if values.dtype == types.uint32 else float32


@numba.njit(inline="always")
def fill(array, start, stop, number):
    """A slice that is assigned to takes Numba a second and a half to compile."""
    for i in range(U(start), U(stop)):
        array[i] = number
