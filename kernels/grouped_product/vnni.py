"""The innermost loop of the product in LLVM's own words, because Numba has no vectors and no VNNI instruction.

`vpdpbusd` multiplies 64 unsigned bytes with 64 signed ones and adds every four products to one of 16 sums. Here a sum
is a weight row: 16 rows advance together, four columns an instruction, and every group of weights that was loaded
serves all tokens of the call. Activations are numbers of 16 bits, in two bytes that take their own instruction: of
eight bits they would be rounded too coarsely (measured: 0.68 % perplexity instead of 0.01 %).

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

ROWS = 16
"""Weight rows of a tile: the 32-bit lanes of a 512-bit register."""
GROUP = 32
REGISTER = 64
SCALE_BYTES = 2 * ROWS * 2

INT, BYTE, FLOAT, HALF = ir.IntType(32), ir.IntType(8), ir.FloatType(), ir.HalfType()
INTS, BYTES, FLOATS, HALVES = (ir.VectorType(kind, n) for kind, n in ((INT, 16), (BYTE, 64), (FLOAT, 16), (HALF, 16)))


def runs_here() -> bool:
    """Whether this processor has the instruction in its 512-bit form."""
    features = binding.get_host_cpu_features()
    return bool(features.get("avx512vnni") and features.get("avx512bw"))


def group_bytes(bits: int) -> int:
    """Bytes of one group of a tile, scales and minima included."""
    return ROWS * GROUP * bits // 8 + SCALE_BYTES


@intrinsic
def multiply_tile(_context, packed, tile, x, x_scales, first, groups, out, out_at, out_stride, bits, count):
    """out[token, 16 rows] = the tile times `count` tokens. `bits` and `count` are literals: the sums are registers.

    packed    [tiles * groups * group_bytes] uint8, `tile` is where the tile starts
    x         [num_tokens * groups * 2 * 32] int8: the high bytes of a group and then its low ones, both signed, so that
              the number is 256 * high + low; `first` is the first token
    x_scales  [num_tokens * groups * 2] float32: scale, and scale times the sum of the group's numbers
    out       float32; the first token's 16 results go to `out_at` on, the next token's `out_stride` further
    """
    if not (isinstance(bits, types.IntegerLiteral) and isinstance(count, types.IntegerLiteral)):
        raise RequireLiteralValue("bits and count")

    def generate(context, builder, signature, arguments):
        def start_of(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position]).data

        _, tile, _, _, first, groups, _, out_at, out_stride, _, _ = arguments
        loop = _TileLoop(
            builder,
            bits.literal_value,
            groups,
            builder.gep(start_of(0), [tile]),
            [builder.add(first, first.type(t)) for t in range(count.literal_value)],
            start_of(2),
            start_of(3),
        )
        for t, total in enumerate(loop.run()):
            target = builder.gep(start_of(6), [builder.add(out_at, builder.mul(out_stride, out_stride.type(t)))])
            builder.store(total, builder.bitcast(target, FLOATS.as_pointer()), align=4)
        return context.get_dummy_value()

    size = types.uintp
    return types.void(packed, size, x, x_scales, size, size, out, size, size, bits, count), generate


@dataclass(frozen=True)
class _TileLoop:
    """Writes the loop over the groups of one tile. All fields but `bits` are LLVM values."""

    builder: Any
    bits: int
    groups: Any
    packed: Any
    tokens: list[Any]
    x: Any
    x_scales: Any

    def run(self) -> list[Any]:
        """The float32 sums of each token, after the loop."""
        zeros = ir.Constant(FLOATS, [0.0] * ROWS)
        totals = [cgutils.alloca_once_value(self.builder, zeros) for _ in self.tokens]
        for total in totals:
            self.builder.store(zeros, total)
        with cgutils.for_range(self.builder, self.groups) as loop:
            self._add_group(loop.index, totals)
        return [self.builder.load(total) for total in totals]

    def _add_group(self, group: Any, totals: list[Any]) -> None:
        b = self.builder
        here = b.gep(self.packed, [b.mul(group, group.type(group_bytes(self.bits)))])
        rows = [b.add(b.mul(token, self.groups), group) for token in self.tokens]
        high, low = ([ir.Constant(INTS, [0] * 16) for _ in rows] for _ in range(2))
        for column, weights in self._registers(here):
            for t, row in enumerate(rows):
                numbers = b.gep(self.x, [b.mul(row, row.type(2 * GROUP))])
                for sums, byte in ((high, 0), (low, GROUP)):
                    four = self._load(self._after(numbers, byte + column), INT)
                    sums[t] = self._dot(sums[t], weights, self._everywhere(four, INTS))
        scale, minimum = self._scales_and_minima(here)
        eight = ir.Constant(INTS, [8] * 16)
        for t, (total, row) in enumerate(zip(totals, rows, strict=True)):
            whole = b.add(b.shl(high[t], eight), low[t])
            pair = b.gep(self.x_scales, [b.mul(row, row.type(2))])
            x_scale = self._everywhere(b.load(pair), FLOATS)
            x_sum = self._everywhere(b.load(b.gep(pair, [row.type(1)])), FLOATS)
            so_far = self._fma(minimum, x_sum, b.load(total))
            b.store(self._fma(b.fmul(b.sitofp(whole, FLOATS), x_scale), scale, so_far), total)

    def _registers(self, here: Any) -> list[tuple[int, Any]]:
        """Weights as bytes, with the first of the four columns they belong to."""
        b = self.builder
        if self.bits == 8:
            return [(4 * j, self._load(self._after(here, REGISTER * j), BYTES)) for j in range(8)]
        low_bits, four = ir.Constant(BYTES, [15] * 64), ir.Constant(BYTES, [4] * 64)
        registers = []
        for j in range(4):
            both = self._load(self._after(here, REGISTER * j), BYTES)
            registers += [(4 * j, b.and_(both, low_bits)), (16 + 4 * j, b.lshr(both, four))]
        return registers

    def _scales_and_minima(self, here: Any) -> list[Any]:
        at = group_bytes(self.bits) - SCALE_BYTES
        halves = [self._load(self._after(here, at + offset), HALVES) for offset in (0, SCALE_BYTES // 2)]
        return [self.builder.fpext(half, FLOATS) for half in halves]

    def _dot(self, sums: Any, weights: Any, x: Any) -> Any:
        b = self.builder
        kind = ir.FunctionType(INTS, [INTS, BYTES, BYTES])
        name = "llvm.x86.avx512.vpdpbusd.512"
        instruction = cgutils.get_or_insert_function(b.module, kind, name)
        return b.call(instruction, [sums, weights, b.bitcast(x, BYTES)])

    def _fma(self, one: Any, other: Any, more: Any) -> Any:
        kind = ir.FunctionType(FLOATS, [FLOATS] * 3)
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, kind, "llvm.fma.v16f32"), [one, other, more]
        )

    def _after(self, pointer: Any, offset: int) -> Any:
        return self.builder.gep(pointer, [ir.IntType(64)(offset)])

    def _load(self, pointer: Any, kind: Any) -> Any:
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=1)

    def _everywhere(self, scalar: Any, kind: Any) -> Any:
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INT(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT, 16), [0] * 16))
