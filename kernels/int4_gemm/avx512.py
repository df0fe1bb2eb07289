"""The innermost loop of the product in LLVM IR, because Numba has no vectors and no VNNI instruction.

`vpdpbusd` multiplies 64 unsigned bytes with 64 signed ones and adds every four products to one of 16 sums. Here a sum
is a weight row: 16 rows advance together, four columns an instruction. A group of weights is loaded and unpacked once
into eight registers, and all tokens of the call pass by it; their float sums stay in registers from the first group to
the last. Activations are bytes with a scale a group: measured on two texts, perplexity 0.3 and 0.4 % above that of the
dequantised model in float32, where 16 bits in two instructions gave 0.00 %.

A tile of 16 rows, group by group:

    four bits   register j of 4   columns 4 j .. 4 j + 3 in the low halves, 16 + 4 j .. 16 + 4 j + 3 in the high ones
    eight bits  register j of 8   columns 4 j .. 4 j + 3
    then        16 scales and 16 minima, float16
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from dataclasses import dataclass
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from kernels.vector_builder import BYTES, FLOATS, HALVES, INTS, LANES, VectorBuilder

ROWS = LANES
"""Weight rows of a tile: the 32-bit lanes of a 512-bit register."""
GROUP = 32
REGISTER = 64
SCALE_BYTES = 2 * ROWS * 2
MAX_TOKENS = 16
"""Tokens of one call: their sums, eight registers of weights, scales, minima and TOKENS_IN_FLIGHT more fill 30 of
32."""

PREFETCH_BYTES = 4096
"""Bytes between the group in work and the one being fetched: the processor's own guess ends at each page of memory."""
TOKENS_IN_FLIGHT = 4
"""Tokens whose sums of whole numbers grow in turns: an instruction takes four cycles, and two begin in each."""


def is_supported() -> bool:
    """Whether this processor has the instruction in its 512-bit form."""
    features = binding.get_host_cpu_features()
    return bool(features.get("avx512vnni") and features.get("avx512bw"))


def group_bytes(bits: int) -> int:
    """Bytes of one group of a tile, scales and minima included."""
    return ROWS * GROUP * bits // 8 + SCALE_BYTES


@intrinsic
def multiply_tile(_context, packed, x, x_scales, first, groups, out, out_at, out_stride, bits, count):
    """out[token, 16 rows] = the tile times `count` tokens. The last two are literals: sums are registers.

    packed    the address where the tile starts
    x         int8: the block of `count` tokens that starts with token `first`, [groups, count, 32]
    x_scales  float32 [groups, count, 2] of the same block: scale, and scale times the sum of the group's numbers
    out       float32; the first token's 16 results go to `out_at` on, the next token's `out_stride` further
    """
    if not all(isinstance(literal, types.IntegerLiteral) for literal in (bits, count)):
        raise RequireLiteralValue("bits and count")

    def generate(context, builder, signature, arguments):
        def start_of(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position]).data

        packed, _, _, first, groups, _, out_at, out_stride, _, _ = arguments
        b = VectorBuilder(builder)
        token_groups = builder.mul(first, groups)
        loop = _TileLoop(
            b,
            bits.literal_value,
            count.literal_value,
            groups,
            builder.inttoptr(packed, ir.IntType(8).as_pointer()),
            b.gep(start_of(1), builder.mul(token_groups, groups.type(GROUP))),
            b.gep(start_of(2), builder.mul(token_groups, groups.type(2))),
        )
        for t, total in enumerate(loop.run()):
            b.store(total, b.gep(start_of(5), builder.add(out_at, builder.mul(out_stride, out_stride.type(t)))))
        return context.get_dummy_value()

    size = types.uintp
    return types.void(size, x, x_scales, size, size, out, size, size, bits, count), generate


@dataclass(frozen=True)
class _TileLoop:
    """Writes the loop over the groups of one tile. `groups` and what follows are LLVM values."""

    vectors: VectorBuilder
    bits: int
    count: int
    groups: Any
    packed: Any
    x: Any
    x_scales: Any

    def run(self) -> list[Any]:
        """The float32 sums of each token, after the loop."""
        builder = self.vectors.builder
        zeros = ir.Constant(FLOATS, [0.0] * ROWS)
        totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(self.count)]
        for total in totals:
            builder.store(zeros, total)
        with cgutils.for_range(builder, self.groups) as loop:
            self._add_group(loop.index, totals)
        return [builder.load(total) for total in totals]

    def _add_group(self, group: Any, totals: list[Any]) -> None:
        b, index = self.vectors, self.vectors.builder.mul
        here = b.gep(self.packed, index(group, group.type(group_bytes(self.bits))))
        x = b.gep(self.x, index(group, group.type(self.count * GROUP)))
        x_scales = b.gep(self.x_scales, index(group, group.type(self.count * 2)))
        weights = self._weights(here)
        scale, minimum = self._scales_and_minima(here)
        for line in range(group_bytes(self.bits) // REGISTER):
            b.prefetch(b.gep(here, PREFETCH_BYTES + REGISTER * line))
        for first in range(0, self.count, TOKENS_IN_FLIGHT):
            some = range(first, min(first + TOKENS_IN_FLIGHT, self.count))
            wholes = self._dot_products(weights, [b.gep(x, t * GROUP) for t in some])
            for t, whole in zip(some, wholes, strict=True):
                x_scale, x_sum = (b.splat(b.builder.load(b.gep(x_scales, 2 * t + i)), FLOATS) for i in range(2))
                so_far = b.fma(minimum, x_sum, b.builder.load(totals[t]))
                b.builder.store(b.fma(b.builder.fmul(whole, x_scale), scale, so_far), totals[t])

    def _dot_products(self, weights: list[tuple[int, Any]], tokens: list[Any]) -> list[Any]:
        """Whole numbers as float32, for each token: a group of 16 rows times the same group of the token."""
        b = self.vectors
        sums = [ir.Constant(INTS, [0] * ROWS) for _ in tokens]
        for column, register in weights:
            for t, x in enumerate(tokens):
                four = b.load(b.gep(x, column), ir.IntType(32))
                sums[t] = self._dot(sums[t], register, b.splat(four, INTS))
        return [b.builder.sitofp(whole, FLOATS) for whole in sums]

    def _weights(self, here: Any) -> list[tuple[int, Any]]:
        """Eight registers of bytes, with the first of the four columns they belong to."""
        b = self.vectors
        if self.bits == 8:
            return [(4 * j, b.load(b.gep(here, REGISTER * j), BYTES)) for j in range(8)]
        registers = []
        for j in range(4):
            both = b.load(b.gep(here, REGISTER * j), BYTES)
            low, high = b.builder.and_(both, b.constant(15, BYTES)), b.builder.lshr(both, b.constant(4, BYTES))
            registers += [(4 * j, low), (16 + 4 * j, high)]
        return registers

    def _scales_and_minima(self, here: Any) -> list[Any]:
        b, at = self.vectors, group_bytes(self.bits) - SCALE_BYTES
        halves = [b.load(b.gep(here, at + offset), HALVES) for offset in (0, SCALE_BYTES // 2)]
        return [b.builder.fpext(half, FLOATS) for half in halves]

    def _dot(self, sums: Any, weights: Any, x: Any) -> Any:
        b = self.vectors
        return b.call("llvm.x86.avx512.vpdpbusd.512", INTS, sums, weights, b.builder.bitcast(x, BYTES))
