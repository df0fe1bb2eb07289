"""The innermost loop of the product in LLVM IR, because Numba has no vectors and no bfloat16 instruction.

`vdpbf16ps` multiplies 32 pairs of bfloat16 and adds every two products to one of 16 float32 sums. As in
kernels/int4_gemm, a sum is a weight row: 32 rows in two registers advance together, two columns an instruction,
and the sums of all tokens stay in registers from the first column to the last. Two registers, because two numbers can
be loaded in a cycle and two instructions begun: of one register, loading a token's pair would cost as much as using it.

A tile of 32 rows is [columns / 2, 32, 2].
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from itertools import chain
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from kernels.vector_builder import FLOATS, INT, INTS, LANES, VectorBuilder

REGISTERS = 2
ROWS = REGISTERS * LANES
"""Weight rows of a tile: the 32-bit lanes of two 512-bit registers."""
REGISTER = 64
MAX_TOKENS = 8
"""Tokens of one call. Two sums begin in each cycle and take six: fewer than 12 sums leave the processor waiting."""
PREFETCH_BYTES = 4096
"""Bytes between the weights in work and those being fetched: the processor's own guess ends at each page of memory."""


def has_instruction() -> bool:
    """Whether this processor can run the kernel."""
    return bool(binding.get_host_cpu_features().get("avx512bf16"))


def is_supported() -> bool:
    """Whether this processor has the instruction, and no tiles in hardware, with which oneDNN is faster."""
    return has_instruction() and not binding.get_host_cpu_features().get("amx-bf16")


@intrinsic
def multiply_tile(_context, tile, x, first, pairs, out, out_at, out_stride, count):
    """out[token, 32 rows] = the tile times `count` tokens, a literal: sums are registers.

    tile  the address where it starts
    x     int32, each two bfloat16: the block of `count` tokens that starts with token `first`, [pairs, count]
    out   float32; the first token's 32 results go to `out_at` on, the next token's `out_stride` further
    """
    if not isinstance(count, types.IntegerLiteral):
        raise RequireLiteralValue("count")

    def generate(context, builder, signature, arguments):
        def start_of(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position]).data

        tile, _, first, pairs, _, out_at, out_stride, _ = arguments
        b, tokens = VectorBuilder(builder), range(count.literal_value)
        weights = builder.inttoptr(tile, ir.IntType(8).as_pointer())
        block = b.gep(start_of(1), builder.mul(first, pairs))
        totals = [[cgutils.alloca_once(builder, FLOATS) for _ in range(REGISTERS)] for _ in tokens]
        for total in chain(*totals):
            builder.store(b.constant(0.0, FLOATS), total)
        with cgutils.for_range(builder, pairs) as loop:
            here = b.gep(weights, builder.mul(loop.index, loop.index.type(REGISTERS * REGISTER)))
            x = b.gep(block, builder.mul(loop.index, loop.index.type(len(tokens))))
            registers = [b.load(b.gep(here, r * REGISTER), INTS) for r in range(REGISTERS)]
            for r in range(REGISTERS):
                b.prefetch(b.gep(here, PREFETCH_BYTES + r * REGISTER))
            for t, sums in enumerate(totals):
                pair = b.splat(b.load(b.gep(x, t), INT), INTS)
                for register, total in zip(registers, sums, strict=True):
                    builder.store(b.fma(register, pair, builder.load(total)), total)
        for t, sums in enumerate(totals):
            at = builder.add(out_at, builder.mul(out_stride, out_stride.type(t)))
            for r, total in enumerate(sums):
                b.store(builder.load(total), b.gep(b.gep(start_of(4), at), r * LANES))
        return context.get_dummy_value()

    size = types.uintp
    return types.void(size, x, size, size, out, size, size, count), generate
