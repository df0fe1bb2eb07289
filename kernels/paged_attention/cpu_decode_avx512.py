"""The two innermost loops of decode attention on registers: scores of some heads with keys, weighted sums of values.

Left to itself, LLVM widens a bfloat16 key again for every query head, since a stored score might have changed it, and
does not know how often its loops turn. Here a key or value is loaded once for all heads of its group, and sums stay in
registers over all keys. Written for 512-bit registers and a head_dim of 64; others keep the loops of cpu_decode.py.

A score is a sum over the lanes of its register. Sixteen keys are summed together: registers meet in pairs, and each
meeting halves the lanes of a key, until one register holds a score in each lane:

    key 0   |a a a a|a a a a|a a a a|a a a a|  --.
    key 1   |b b b b|b b b b|b b b b|b b b b|  --+-- |a a b b|..|..|..| --.
    key 2   |c c c c|c c c c|c c c c|c c c c|  --.                        +-- |a b c d|..|..|..| -- ..
    key 3   |d d d d|d d d d|d d d d|d d d d|  --+-- |c c d d|..|..|..| --'

With bfloat16 keys on a processor that multiplies them, operands are pairs in 32-bit lanes: two neighbouring
elements of a key, and the same element of two neighbouring values.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from kernels.vector_builder import BYTE, FLOAT, FLOATS, INT, INTS, LANES, SHORT, SHORTS, VectorBuilder

HEAD_DIM = 64
"""The one size of a head that these loops are written for."""
CHUNK = 64
"""Keys scored before their values are summed: both stay in the first two levels of cache meanwhile."""
STRIP_KEYS = 16
"""Keys that are scored together. Also how far ahead rows are fetched a second time: a processor drops fetches when too
many are under way, and what was dropped would be waited for."""
HEADS_PER_LOAD = 3
"""Query heads that share one reading. Four would fit in the registers, but groups of three and seven are common."""

SECOND_LEVEL = 2
"""LLVM's locality of a prefetch into the second level of cache."""

U = np.uintp
PAIRS = ir.VectorType(SHORT, 2 * LANES)


@cache
def has_wide_registers() -> bool:
    """Whether the processor has 512-bit registers (AVX-512)."""
    return "avx512f" in _features()


def fits_registers(head_dim: int) -> bool:
    """Whether keys are scored and values summed here, on this processor, and not in the loops of cpu_decode.py."""
    return has_wide_registers() and head_dim == HEAD_DIM


@cache
def multiplies_bfloat16() -> bool:
    """Whether this processor adds products of bfloat16 pairs to float32 sums, in 512-bit registers."""
    return {"avx512f", "avx512bf16"} <= _features()


def _features() -> set[str]:
    """Of the processor that Numba compiles for: this one, or what NUMBA_CPU_FEATURES says."""
    told = numba.config.CPU_FEATURES
    if told is not None:
        return {name.removeprefix("+") for name in told.split(",") if name.startswith("+")}
    return {name for name, present in binding.get_host_cpu_features().items() if present}


@numba.njit(inline="always")
def score_in_registers(query, size, keys, values, offsets, start, num_keys, sizes, scores):
    """scores[head, k] = query[head] . key[start + k] for HEAD_DIM; `size` is a query's row, in float32 or pairs."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group = num_heads // num_kv_heads
    for k in range(U(0), U(num_keys), U(STRIP_KEYS)):
        for kv_head in range(num_kv_heads):
            head, row, left, first = kv_head * head_dim, kv_head * group, group, start + k
            while left > U(0):
                q, at = row * U(size), row * U(CHUNK) + k
                if left >= U(HEADS_PER_LOAD):
                    score_strip(
                        query, q, keys, values, offsets, first, head, scores, at, U(CHUNK), HEADS_PER_LOAD, HEAD_DIM
                    )  # fmt: skip
                    row, left = row + U(HEADS_PER_LOAD), left - U(HEADS_PER_LOAD)
                else:
                    score_strip(query, q, keys, values, offsets, first, head, scores, at, U(CHUNK), 1, HEAD_DIM)
                    row, left = row + U(1), left - U(1)


@numba.njit(inline="always")
def add_values_in_registers(weights, stride, steps, values, keys, offsets, start, sizes, out):
    """out[head] += weights[head, k] * value[start + k] for HEAD_DIM, in steps of a key or two."""
    num_heads, num_kv_heads, head_dim, _ = sizes
    group, ahead = num_heads // num_kv_heads, U(CHUNK)
    for kv_head in range(num_kv_heads):
        head, row, left = kv_head * head_dim, kv_head * group, group
        while left > U(0):
            o, at = row * head_dim, row * stride
            if left >= U(HEADS_PER_LOAD):
                add_value_rows(
                    weights, at, stride, values, keys, offsets, start, ahead, head, steps, out, o,
                    HEADS_PER_LOAD, HEAD_DIM,
                )  # fmt: skip
                row, left = row + U(HEADS_PER_LOAD), left - U(HEADS_PER_LOAD)
            else:
                add_value_rows(
                    weights, at, stride, values, keys, offsets, start, ahead, head, steps, out, o, 1, HEAD_DIM
                )  # fmt: skip
                row, left = row + U(1), left - U(1)


@intrinsic
def score_strip(_context, query, query_at, keys, values, offsets, first, head, scores, scores_at, stride, rows, dim):
    """scores[row, k] = query[row] . key[first + k] for `rows` rows (a literal) and STRIP_KEYS keys.

    query   [rows * dim] from `query_at` on, float32 or uint32 pairs of bfloat16
    keys    float32, or uint16 bits of bfloat16, which are widened unless the query is in pairs; `dim` a literal
    key k starts at offsets[k] + head; scores[row, k] is at scores_at + row * stride + k
    Meanwhile their values are fetched, and the next strip's keys once more.
    """
    _require_literals(rows, dim)
    size = types.uintp
    signature = types.void(query, size, keys, values, offsets, size, size, scores, size, size, rows, dim)

    def generate(context, builder, signature, arguments):
        b, query, keys, values, offsets, scores = _Rows.open(context, builder, signature, arguments, (0, 2, 3, 4, 7))
        _, query_at, _, _, _, first, head, _, scores_at, stride, _, _ = arguments
        width, in_bf16_pairs = dim.literal_value, query.type.pointee == INT
        size_of_query = width // 2 if in_bf16_pairs else width
        queries = [
            b.row(query, builder.add(query_at, first.type(row * size_of_query)), size_of_query)
            for row in range(rows.literal_value)
        ]
        unmerged: list[list[tuple[int, Any]]] = [[] for _ in queries]
        for k in range(STRIP_KEYS):
            this = builder.gep(offsets, [builder.add(first, first.type(k))])
            at = b.element(this, head)
            b.prefetch_row(values, at, width)
            b.prefetch_row(keys, b.element(builder.gep(this, [first.type(STRIP_KEYS)]), head), width)
            parts = b.load_bf16_pairs(keys, at, width) if in_bf16_pairs else b.row(keys, at, width)
            for waiting, numbers in zip(unmerged, queries, strict=True):
                total = b.constant(0.0, FLOATS)
                for part, number in zip(parts, numbers, strict=True):
                    total = b.fma(part, number, total)
                b.horizontal_add(waiting, total)
        for row, [(_, sums)] in enumerate(unmerged):
            b.store(sums, b.gep(scores, builder.add(scores_at, builder.mul(stride, first.type(row)))))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_value_rows(
    _context, weights, weights_at, stride, values, keys, offsets, first, ahead, head, steps, out, out_at, rows, dim
):
    """out[row] += weights[row, s] * value[s] for `rows` rows (a literal) and all steps of a chunk.

    A step is a key, or with weights in uint32 pairs two of them. weights[row, s] is at weights_at + row * stride + s.
    Value k starts at offsets[first + k] + head and has `dim` elements (a literal); out [rows * dim] float32.
    Meanwhile the keys `ahead` further on are fetched, and values STRIP_KEYS further on once more.
    """
    _require_literals(rows, dim)
    size = types.uintp
    signature = types.void(weights, size, size, values, keys, offsets, size, size, size, size, out, size, rows, dim)

    def generate(context, builder, signature, arguments):
        b, weights, values, keys, offsets, out = _Rows.open(context, builder, signature, arguments, (0, 3, 4, 5, 10))
        _, weights_at, stride, _, _, _, first, ahead, head, steps, _, out_at, _, _ = arguments
        width, keys_a_step = dim.literal_value, 2 if weights.type.pointee == INT else 1
        totals = []
        for part in b.row(out, out_at, rows.literal_value * width):
            slot = cgutils.alloca_once(builder, FLOATS)
            builder.store(part, slot)
            totals.append(slot)
        with cgutils.for_range(builder, steps) as loop:
            here = builder.gep(offsets, [builder.add(first, builder.mul(loop.index, steps.type(keys_a_step)))])
            rows_of_step = []
            for i in range(keys_a_step):
                this = builder.gep(here, [steps.type(i)])
                b.prefetch_row(keys, b.element(builder.gep(this, [ahead]), head), width)
                b.prefetch_row(values, b.element(builder.gep(this, [ahead.type(STRIP_KEYS)]), head), width)
                start = b.element(this, head)
                load = b.load_bf16_pairs if keys_a_step == 2 else b.row
                rows_of_step.append(load(values, start, width))
            parts = b.interleave(*rows_of_step) if keys_a_step == 2 else rows_of_step[0]
            for row in range(rows.literal_value):
                at = builder.add(builder.add(weights_at, builder.mul(stride, stride.type(row))), loop.index)
                weight = b.splat(builder.load(b.gep(weights, at)), INTS if keys_a_step == 2 else FLOATS)
                for i, part in enumerate(parts, row * len(parts)):
                    builder.store(b.fma(weight, part, builder.load(totals[i])), totals[i])
        for i, slot in enumerate(totals):
            b.store(builder.load(slot), b.gep(out, builder.add(out_at, out_at.type(i * LANES))))
        return context.get_dummy_value()

    return signature, generate


def _require_literals(rows, dim) -> None:
    if not (isinstance(rows, types.IntegerLiteral) and isinstance(dim, types.IntegerLiteral)):
        raise RequireLiteralValue("rows and dim")


class _Rows(VectorBuilder):
    """Loads the rows of keys and values, and adds up and interleaves their registers."""

    def element(self, offset: Any, head: Any) -> Any:
        """Where the row whose offset is stored there has its part for one head."""
        return self.builder.add(self.builder.load(offset), head)

    def row(self, array: Any, at: Any, dim: int) -> list[Any]:
        """`dim` elements from `at` on, 16 to a register; bfloat16 bits are widened to float32."""
        kind, start = ir.VectorType(array.type.pointee, LANES), self.gep(array, at)
        loaded = [self.load(self.gep(start, i), kind) for i in range(0, dim, LANES)]
        return [self._widen(bits) for bits in loaded] if kind == SHORTS else loaded

    def load_bf16_pairs(self, array: Any, at: Any, dim: int) -> list[Any]:
        """`dim` bfloat16 bits from `at` on as pairs in 32-bit lanes, 16 to a register."""
        start = self.gep(array, at)
        return [self.load(self.gep(start, i), INTS) for i in range(0, dim, 2 * LANES)]

    def prefetch_row(self, array: Any, at: Any, dim: int) -> None:
        """Start bringing `dim` elements near: blocks lie anywhere, so the processor cannot guess the next one."""
        element, start = array.type.pointee, self.gep(array, at)
        line = 64 * 8 // (32 if element == FLOAT else element.width)
        for i in range(0, dim, line):
            address = self.builder.bitcast(self.gep(start, i), BYTE.as_pointer())
            self.prefetch(address, SECOND_LEVEL)

    def horizontal_add(self, waiting: list[tuple[int, Any]], sums: Any) -> None:
        """Add one key's lanes to those `waiting`, pairwise like the carries of a binary counter (see above)."""
        level = 0
        while waiting and waiting[-1][0] == level:
            _, earlier = waiting.pop()
            evens, odds = _SHUFFLE_MASKS[level]
            sums = self.builder.fadd(
                self.builder.shuffle_vector(earlier, sums, evens), self.builder.shuffle_vector(earlier, sums, odds)
            )
            level += 1
        waiting.append((level, sums))

    def interleave(self, earlier: list[Any], later: list[Any]) -> list[Any]:
        """Pairs (a0 a1) (a2 a3) .. and (b0 b1) .. to (a0 b0) (a1 b1) ..: twice as many registers."""
        b, low = self.builder, [i // 2 + i % 2 * 2 * LANES for i in range(2 * LANES)]
        masks = [ir.Constant(ir.VectorType(INT, 2 * LANES), [i + start for i in low]) for start in (0, LANES)]
        return [
            b.bitcast(b.shuffle_vector(b.bitcast(first, PAIRS), b.bitcast(second, PAIRS), mask), INTS)
            for first, second in zip(earlier, later, strict=True)
            for mask in masks
        ]

    def _widen(self, bits: Any) -> Any:
        lanes = self.builder.zext(bits, INTS)
        return self.builder.bitcast(self.builder.shl(lanes, self.constant(16, INTS)), FLOATS)


def _shuffle_masks(within_fours: bool) -> list[Any]:
    """Masks that pick the even and the odd elements of two registers, of every four lanes or of the fours."""
    if within_fours:
        even = [4 * four + i for four in range(4) for i in (0, 2, LANES, LANES + 2)]
        step = 1
    else:
        even = [4 * four + i for four in (0, 2, 4, 6) for i in range(4)]
        step = 4
    return [ir.Constant(INTS, even), ir.Constant(INTS, [i + step for i in even])]


_SHUFFLE_MASKS = [_shuffle_masks(True), _shuffle_masks(True), _shuffle_masks(False), _shuffle_masks(False)]
