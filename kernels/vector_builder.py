"""512-bit vector instructions over an LLVM builder: what the GEMM kernels write their innermost loops with."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

LANES = 16
INT, SHORT, BYTE, FLOAT, HALF = ir.IntType(32), ir.IntType(16), ir.IntType(8), ir.FloatType(), ir.HalfType()
INTS, SHORTS, FLOATS, HALVES = (ir.VectorType(kind, LANES) for kind in (INT, SHORT, FLOAT, HALF))
BYTES = ir.VectorType(BYTE, 4 * LANES)


class VectorBuilder:
    """Emits LLVM instructions on vectors of LANES 32-bit lanes through `builder`."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def gep(self, pointer: Any, offset: Any) -> Any:
        """getelementptr: `pointer` moved on by `offset` of its elements."""
        return self.builder.gep(pointer, [ir.IntType(64)(offset) if isinstance(offset, int) else offset])

    def load(self, pointer: Any, kind: Any) -> Any:
        """What lies at `pointer`, aligned or not, as the LLVM type `kind`."""
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=1)

    def store(self, value: Any, pointer: Any) -> None:
        """Store a scalar or vector at `pointer`, aligned or not."""
        self.builder.store(value, self.builder.bitcast(pointer, value.type.as_pointer()), align=1)

    def constant(self, number: Any, kind: Any) -> Any:
        """A constant vector with the number in every lane."""
        return ir.Constant(kind, [number] * kind.count)

    def splat(self, scalar: Any, kind: Any) -> Any:
        """The scalar in every lane of a vector of type `kind`."""
        first = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INT(0))
        return self.builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count))

    def fma(self, a: Any, b: Any, acc: Any) -> Any:
        """a * b + acc in every lane."""
        return self.call("llvm.fma.v16f32", FLOATS, a, b, acc)

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
