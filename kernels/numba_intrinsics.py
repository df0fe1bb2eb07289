"""Intrinsics that Numba does not have: bfloat16, prefetch, atomic add, clock, a vectorised exp, an optional cache.

Everything here is inlined into the loops that call it.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from kernels.numba_cache import cache_of
from kernels.numba_linking import keep_to_own_copies

keep_to_own_copies()

FAST_MATH = {"reassoc", "contract", "arcp", "nsz", "nnan"}
"""Lets LLVM reorder sums and fuse multiply-adds. Not "ninf": the softmax loops count on minus infinity."""


INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For what only compiled code calls: its wrappers for Python would take longer to compile than the function."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba.njit with these kernels' arithmetic, cached on disk where a cache folder can be written.

    Division follows NumPy: Python's would test for zero each time, and a loop with a test is not vectorised.
    """
    arithmetic = {"fastmath": FAST_MATH, "error_model": "numpy"}

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**arithmetic, **options)(function)
        dispatcher._cache = cache_of(function)
        return dispatcher

    return decorate


def flat_view(tensor: torch.Tensor) -> Any:
    """A contiguous tensor of any shape as a flat NumPy array on the same memory; bfloat16 as its bits, uint16."""
    if not tensor.is_contiguous():
        raise ValueError(f"the cpu kernels need a contiguous tensor, not strides {tensor.stride()}")
    bits = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
    return bits.numpy().reshape(-1)


def cached_flat_view(tensor: torch.Tensor) -> Any:
    """`flat_view` of a weight or cache, of any shape, that many steps read in place: made once, kept on the tensor."""
    view = getattr(tensor, "_flat_view", None)
    if view is None:
        view = flat_view(tensor)
        tensor._flat_view = view  # type: ignore[attr-defined]
    return view


@intrinsic
def widen(_context, stored):
    """A cache element as float32: itself, or bfloat16 bits moved to the upper half of a float32."""
    if isinstance(stored, types.Float):
        return types.float32(types.float32), lambda _context, _builder, _signature, arguments: arguments[0]

    def generate(_context, builder, _signature, arguments):
        word = builder.zext(arguments[0], ir.IntType(32))
        return builder.bitcast(builder.shl(word, word.type(16)), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic
def narrow(_context, like, _value):
    """A float32 as an element of `like`'s type: itself, or the bits of the nearest bfloat16, ties to even."""
    if isinstance(like, types.Float):
        same = types.float32(types.float32, types.float32)
        return same, lambda _context, _builder, _signature, arguments: arguments[1]

    def generate(_context, builder, _signature, arguments):
        word = builder.bitcast(arguments[1], ir.IntType(32))
        odd = builder.and_(builder.lshr(word, word.type(16)), word.type(1))
        rounded = builder.add(word, builder.add(odd, word.type(0x7FFF)))
        return builder.trunc(builder.lshr(rounded, word.type(16)), ir.IntType(16))

    return types.uint16(types.uint16, types.float32), generate


HALF, ROUND, HIGH = np.uint32(16), np.uint32(0x8000), np.uint32(0xFFFF0000)


@numba.njit(inline="always")
def pack_bf16_pair(first, second):
    """The bits of two float32 as one word of two bfloat16, the first one low. Ties go up; for what is no NaN."""
    return ((first + ROUND) >> HALF) | ((second + ROUND) & HIGH)


@intrinsic
def power_of_two(_context, _exponent):
    """2 ** exponent for an int32 in [-126, 127]: the exponent field of a float32, written directly."""

    def generate(_context, builder, _signature, arguments):
        biased = builder.add(arguments[0], arguments[0].type(127))
        return builder.bitcast(builder.shl(biased, biased.type(23)), ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def prefetch(_context, array, index):
    """Ask for the cache line of array[index], into the second-level cache, without waiting for it."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        function = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        read, second_level, data_cache = flag(0), flag(2), flag(1)
        llvm_prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], function)
        builder.call(llvm_prefetch, [address, read, second_level, data_cache])
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def fetch_add(_context, array, index, amount):
    """array[index] += amount in one indivisible step, publishing all writes before it. Returns the old value."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [arguments[1]]), arguments[2], "acq_rel")

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def clock(_context):
    """Ticks of the processor's own clock, of a steady length that only the processor knows."""

    def generate(_context, builder, _signature, _arguments):
        kind = ir.FunctionType(ir.IntType(64), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter"), [])

    return types.int64(), generate


LOG2_E = np.float32(1.4426950408889634)
LIMIT = np.float32(126.0)
# 2 ** f on [0, 1): the polynomial of degree 5, exact at 0, with the least greatest relative error (8.3e-8).
C5, C4, C3, C2, C1 = (np.float32(c) for c in (0.0018671305, 0.0090170292, 0.0557999142, 0.2401644497, 0.6931513119))
ONE = np.float32(1.0)


@numba.njit(inline="always")
def exponential(x):
    """e ** x in float32, in arithmetic that LLVM can vectorise (a call to expf it cannot).

    Arguments are held to +-87: minus infinity gives 1e-38, not 0.
    """
    power = min(max(x * LOG2_E, -LIMIT), LIMIT)
    whole = np.floor(power)
    f = power - whole
    fraction = ((((C5 * f + C4) * f + C3) * f + C2) * f + C1) * f + ONE
    return fraction * power_of_two(np.int32(whole))
