"""What prefill attention multiplies: tiles of keys and values, turned query rows and weights, in numbers or in words.

A cache of float32 is multiplied as it is. One of bfloat16 is multiplied in uint32 words of two, where the processor
has the instruction (cpu_panels.py), and else widened. Which of them is decided when a function is compiled.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

from kernels.numba_math import INNER, compiled, rounded_pair, widen
from kernels.paged_attention.cpu_panels import ROWS
from kernels.paged_attention.cpu_vectors import multiplies_bfloat16

KEYS = 96
"""Of a tile: a multiple of BESIDE. A panel's scores with them fill half of the first-level cache."""

U = np.uintp
ZERO, HALF = np.float32(0.0), np.uint32(16)


def kind(cache):
    """A zero of the type that is multiplied: words of two bfloat16 where the processor can, else float32."""


@overload(kind)
def _choose_kind(cache):
    if cache.dtype == types.uint16 and multiplies_bfloat16():
        return lambda cache: np.uint32(0)
    return lambda cache: np.float32(0.0)


def steps_of(count, kind):
    """So many elements in steps."""


@overload(steps_of)
def _choose_steps_of(count, kind):
    if kind == types.uint32:
        return lambda count, kind: (count + U(1)) // U(2)
    return lambda count, kind: count


def turn_rows(query, sources, head_dim, panels, to):
    """ROWS rows to the columns of a panel that starts at `to`: the row of column r starts at sources[r]."""


@overload(turn_rows, jit_options=INNER)
def _choose_turn_rows(query, sources, head_dim, panels, to):
    def words(query, sources, head_dim, panels, to):
        _turn_words(query.view(np.uint32), sources, head_dim, panels, to)

    def numbers(query, sources, head_dim, panels, to):
        for i in range(head_dim):
            for r in range(U(ROWS)):
                panels[to + i * U(ROWS) + r] = query[sources[r] + i]

    return words if panels.dtype == types.uint32 else numbers


@compiled(**INNER)
def _turn_words(bits, sources, head_dim, panels, to):
    for i in range(head_dim // U(2)):
        for r in range(U(ROWS)):
            at = sources[r] + U(2) * i
            panels[to + i * U(ROWS) + r] = rounded_pair(bits[at], bits[at + U(1)])
    if head_dim % U(2) == U(1):
        for r in range(U(ROWS)):
            last = rounded_pair(bits[sources[r] + head_dim - U(1)], np.uint32(0))
            panels[to + head_dim // U(2) * U(ROWS) + r] = last


@compiled(**INNER)
def _copy_rows(cache, offsets, part, num_keys, width, keys, stride):
    """Rows of `width` elements; offsets count parts of one."""
    for k in range(num_keys):
        to, start = k * stride, offsets[k] // part
        for i in range(width):
            keys[to + i] = cache[start + i]


def load_keys(cache, offsets, num_keys, padded, head_dim, keys):
    """keys[key, step]"""


@overload(load_keys, jit_options=INNER)
def _choose_load_keys(cache, offsets, num_keys, padded, head_dim, keys):
    def words(cache, offsets, num_keys, padded, head_dim, keys):
        stride = U(len(keys) // KEYS)
        if head_dim % U(2) == U(0):
            _copy_rows(cache.view(np.uint32), offsets, U(2), num_keys, stride, keys, stride)
        else:  # which leaves the last half 0
            _copy_rows(cache, offsets, U(1), num_keys, head_dim, keys.view(np.uint16), U(2) * stride)
        fill(keys, num_keys * stride, padded * stride, 0)

    def numbers(cache, offsets, num_keys, padded, head_dim, keys):
        for k in range(num_keys):
            for i in range(head_dim):
                keys[k * head_dim + i] = widen(cache[offsets[k] + i])
        fill(keys, num_keys * head_dim, padded * head_dim, ZERO)

    return words if keys.dtype == types.uint32 else numbers


def load_values(cache, offsets, num_keys, padded, head_dim, values):
    """values[step, element]; `padded` is a multiple of two."""


@overload(load_values, jit_options=INNER)
def _choose_load_values(cache, offsets, num_keys, padded, head_dim, values):
    def words(cache, offsets, num_keys, padded, head_dim, values):
        stride = U(len(values) // (KEYS // 2))
        for step in range(num_keys // U(2)):
            one, other = offsets[U(2) * step], offsets[U(2) * step + U(1)]
            for i in range(head_dim):
                values[step * stride + i] = np.uint32(cache[one + i]) | (np.uint32(cache[other + i]) << HALF)
        if num_keys % U(2) == U(1):
            for i in range(head_dim):
                values[num_keys // U(2) * stride + i] = cache[offsets[num_keys - U(1)] + i]
        fill(values, (num_keys + U(1)) // U(2) * stride, padded // U(2) * stride, 0)

    def numbers(cache, offsets, num_keys, padded, head_dim, values):
        stride = U(len(values) // KEYS)
        for k in range(num_keys):
            for i in range(head_dim):
                values[k * stride + i] = widen(cache[offsets[k] + i])
        fill(values, num_keys * stride, padded * stride, ZERO)

    return words if values.dtype == types.uint32 else numbers


def weights_of(scores, count, words, values):
    """The weights as `add_panel` takes them beside such values, and how many steps they are."""


@overload(weights_of, jit_options=INNER)
def _choose_weights_of(scores, count, words, values):
    def pairs(scores, count, words, values):
        bits, steps = scores.view(np.uint32), count // U(2)
        for k in range(steps):
            for r in range(U(ROWS)):
                at = U(2) * k * U(ROWS) + r
                words[k * U(ROWS) + r] = rounded_pair(bits[at], bits[at + U(ROWS)])
        return words, steps

    def numbers(scores, count, words, values):
        return scores, count

    return pairs if values.dtype == types.uint32 else numbers


@numba.njit(inline="always")
def fill(array, start, stop, number):
    """A slice that is assigned to takes Numba a second and a half to compile."""
    for i in range(U(start), U(stop)):
        array[i] = number
