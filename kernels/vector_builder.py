"""Vector instructions over an LLVM builder: what GEMM and attention kernels write their innermost loops with."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

LANES = 16
INT, SHORT, BYTE, FLOAT, HALF = ir.IntType(32), ir.IntType(16), ir.IntType(8), ir.FloatType(), ir.HalfType()
INTS, SHORTS, FLOATS, HALVES = (ir.VectorType(kind, LANES) for kind in (INT, SHORT, FLOAT, HALF))
BYTES = ir.VectorType(BYTE, 4 * LANES)


class _BFloat(ir.Type):  # type: ignore[misc]
    """LLVM's bfloat, for which llvmlite has no class."""

    def _to_string(self) -> str:
        return "bfloat"


BFLOATS = ir.VectorType(_BFloat(), 2 * LANES)


class VectorBuilder:
    """Emits LLVM instructions on vectors through `builder`; the types above are those of 512-bit registers."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    @classmethod
    def open(cls, context: Any, builder: Any, signature: Any, arguments: Any, arrays: tuple[int, ...]) -> list[Any]:
        """For an intrinsic: a VectorBuilder, and the data pointers of those arguments that are arrays."""
        return [
            cls(builder),
            *(context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in arrays),
        ]

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
        """a * b + acc in every float32 lane; of 32-bit words that are bfloat16 pairs, the sum of both products."""
        if a.type == acc.type:
            return self.call(f"llvm.fma.v{a.type.count}f32", a.type, a, b, acc)
        pairs = [self.builder.bitcast(operand, BFLOATS) for operand in (a, b)]
        return self.call("llvm.x86.avx512bf16.dpbf16ps.512", FLOATS, acc, *pairs)

    def call(self, name: str, result: Any, *arguments: Any, fastmath: tuple[str, ...] = ()) -> Any:
        """An intrinsic of LLVM by its full name."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, arguments, fastmath=fastmath)

    def prefetch(self, pointer: Any, locality: int = 3) -> None:
        """Ask for the cache line at `pointer` without waiting for it. `locality`: LLVM's, 3 for all levels of cache."""
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
        function = self.builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        read, data_cache = flag(0), flag(1)
        self.builder.call(function, [pointer, read, flag(locality), data_cache])
