"""Words for 512-bit vectors over an LLVM builder: what the kernels write their innermost loops with."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

LANES = 16
INT, SHORT, BYTE, FLOAT, HALF = ir.IntType(32), ir.IntType(16), ir.IntType(8), ir.FloatType(), ir.HalfType()
INTS, SHORTS, FLOATS, HALVES = (ir.VectorType(kind, LANES) for kind in (INT, SHORT, FLOAT, HALF))
BYTES = ir.VectorType(BYTE, 4 * LANES)


class Words:
    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def after(self, pointer: Any, offset: Any) -> Any:
        """`pointer` moved on by so many of its elements."""
        return self.builder.gep(pointer, [ir.IntType(64)(offset) if isinstance(offset, int) else offset])

    def load(self, pointer: Any, kind: Any) -> Any:
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=1)

    def store(self, numbers: Any, pointer: Any) -> None:
        self.builder.store(numbers, self.builder.bitcast(pointer, numbers.type.as_pointer()), align=1)

    def constant(self, number: Any, kind: Any) -> Any:
        """The number in every lane."""
        return ir.Constant(kind, [number] * kind.count)

    def everywhere(self, scalar: Any, kind: Any) -> Any:
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INT(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count))

    def fma(self, one: Any, other: Any, more: Any) -> Any:
        return self.call("llvm.fma.v16f32", FLOATS, one, other, more)

    def call(self, name: str, result: Any, *arguments: Any, fastmath: tuple[str, ...] = ()) -> Any:
        """An intrinsic of LLVM by its full name."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, arguments, fastmath=fastmath)

    def prefetch(self, pointer: Any) -> None:
        """Ask for the cache line at `pointer` without waiting for it."""
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
        function = self.builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        read, all_levels, data_cache = flag(0), flag(3), flag(1)
        self.builder.call(function, [pointer, read, all_levels, data_cache])
