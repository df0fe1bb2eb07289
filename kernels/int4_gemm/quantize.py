"""Activations as bytes with a scale a group, in the order in which avx512.py reads them."""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from kernels.vector_builder import FLOAT, FLOATS, INTS, LANES, VectorBuilder

U = np.uintp
GROUP = 32
LARGEST = 127.0


@numba.njit(inline="always")
def block_size(left):
    """Tokens of the next block when `left` are left: 16, or the largest power of two that fits."""
    return 16 if left >= 16 else 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1


@numba.njit(inline="always")
def quantize_blocks(x, first, end, groups, numbers, scales):
    """Tokens first .. end - 1 of x [num_tokens * groups * 32] float32, block after block.

    A block of `count` tokens is numbers int8 [groups, count, 32] and scales [groups, count, 2].
    """
    while first < end:
        count = block_size(end - first)
        start = U(first) * U(groups)
        for t in range(U(count)):
            for group in range(U(groups)):
                source, target = start + t * U(groups) + group, start + group * U(count) + t
                quantize_group(x, source * U(GROUP), numbers, target * U(GROUP), scales, target * U(2))
        first += count


@intrinsic
def quantize_group(_context, x, x_at, numbers, at, scales, scales_at):
    """32 numbers from x[x_at] on as bytes, the largest magnitude 127; the scale, and the scale times the bytes' sum."""

    def generate(context, builder, signature, arguments):
        b = VectorBuilder(builder)
        x, numbers, scales = (
            b.gep(context.make_array(signature.args[i])(context, builder, arguments[i]).data, arguments[i + 1])
            for i in (0, 2, 4)
        )
        halves = [b.load(b.gep(x, start), FLOATS) for start in (0, LANES)]
        magnitudes = [b.call("llvm.fabs.v16f32", FLOATS, half) for half in halves]
        # Without a promise that no number is missing, each maximum would be three instructions.
        larger = b.call("llvm.maxnum.v16f32", FLOATS, *magnitudes, fastmath=("nnan",))
        largest = b.call("llvm.vector.reduce.fmax.v16f32", FLOAT, larger, fastmath=("nnan",))
        factor = builder.select(
            builder.fcmp_ordered(">", largest, FLOAT(0.0)), builder.fdiv(FLOAT(LARGEST), largest), FLOAT(0.0)
        )
        scale = builder.fmul(largest, FLOAT(float(np.float32(1.0 / LARGEST))))
        wholes = []
        for half, start in zip(halves, (0, LANES), strict=True):
            nearest = b.call("llvm.rint.v16f32", FLOATS, builder.fmul(half, b.splat(factor, FLOATS)))
            wholes.append(builder.fptosi(nearest, INTS))
            b.store(builder.trunc(wholes[-1], ir.VectorType(ir.IntType(8), LANES)), b.gep(numbers, start))
        total = b.call("llvm.vector.reduce.add.v16i32", ir.IntType(32), builder.add(*wholes))
        builder.store(scale, scales)
        builder.store(builder.fmul(scale, builder.sitofp(total, FLOAT)), b.gep(scales, 1))
        return context.get_dummy_value()

    size = types.uintp
    return types.void(x, size, numbers, size, scales, size), generate
