"""The two innermost loops of attention on registers: scores of some heads with keys, and weighted sums of values.

Left to itself, LLVM widens a bfloat16 key again for every query head, since a stored score might have changed it, and
does not know how often its loops turn. Here a key or value is loaded and widened once for all heads of its group, and
sums stay in registers over all keys. Written for 512-bit registers and the common head_dims; others keep the loops of
cpu_loops.py.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

LANES = 16
MOST_ROWS = 4
"""Query heads that share one reading: 4 rows of 64 and the value row take 21 of 32 registers."""

FLOAT, INT, SHORT = ir.FloatType(), ir.IntType(32), ir.IntType(16)
FLOATS, INTS, SHORTS = (ir.VectorType(kind, LANES) for kind in (FLOAT, INT, SHORT))


def has_wide_registers() -> bool:
    return bool(binding.get_host_cpu_features().get("avx512f"))


@intrinsic
def score_rows(_context, query, query_at, cache, offsets, head, first, end, scores, scores_at, stride, rows, dim):
    """scores[row, key] = query[row] . key for `rows` rows (a literal) and the keys first .. end - 1 of a chunk.

    query   [rows * dim] float32 from `query_at` on; cache  float32, or uint16 bits of bfloat16
    key k starts at offsets[k] + head; its score goes to scores_at + row * stride + k
    """
    _require_literals(rows, dim)
    size = types.uintp
    signature = types.void(query, size, cache, offsets, size, size, size, scores, size, size, rows, dim)

    def generate(context, builder, signature, arguments):
        b, query, cache, offsets, scores = _Loop.open(context, builder, signature, arguments, (0, 2, 3, 7))
        _, query_at, _, _, head, first, end, _, scores_at, stride, _, _ = arguments
        with cgutils.for_range_slice(builder, first, end, first.type(1), intp=first.type) as (key, _count):
            start = builder.add(builder.load(builder.gep(offsets, [key])), head)
            parts = b.row(cache, start, dim.literal_value)
            for row in range(rows.literal_value):
                at = builder.add(query_at, first.type(row * dim.literal_value))
                total = None
                for part, numbers in zip(parts, b.row(query, at, dim.literal_value), strict=True):
                    total = builder.fmul(part, numbers) if total is None else b.fma(part, numbers, total)
                to = builder.add(builder.add(scores_at, builder.mul(stride, first.type(row))), key)
                builder.store(b.sum(total), builder.gep(scores, [to]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_value_rows(_context, weights, weights_at, stride, cache, offsets, head, count, out, out_at, rows, dim):
    """out[row] += weights[row, k] * value[k] for `rows` rows (a literal) and all `count` keys of a chunk.

    weights[row, k] is at weights_at + row * stride + k; value k starts at offsets[k] + head; out  [rows * dim] float32
    """
    _require_literals(rows, dim)
    size = types.uintp
    signature = types.void(weights, size, size, cache, offsets, size, size, out, size, rows, dim)

    def generate(context, builder, signature, arguments):
        b, weights, cache, offsets, out = _Loop.open(context, builder, signature, arguments, (0, 3, 4, 7))
        _, weights_at, stride, _, _, head, count, _, out_at, _, _ = arguments
        width = dim.literal_value
        totals = []
        for row in range(rows.literal_value):
            for part in b.row(out, builder.add(out_at, out_at.type(row * width)), width):
                slot = cgutils.alloca_once(builder, FLOATS)
                builder.store(part, slot)
                totals.append(slot)
        with cgutils.for_range(builder, count) as loop:
            start = builder.add(builder.load(builder.gep(offsets, [loop.index])), head)
            parts = b.row(cache, start, width)
            for row in range(rows.literal_value):
                at = builder.add(builder.add(weights_at, builder.mul(stride, stride.type(row))), loop.index)
                weight = b.everywhere(builder.load(builder.gep(weights, [at])))
                for i, part in enumerate(parts, row * len(parts)):
                    builder.store(b.fma(weight, part, builder.load(totals[i])), totals[i])
        for i, slot in enumerate(totals):
            b.store(builder.load(slot), out, builder.add(out_at, out_at.type(i * LANES)))
        return context.get_dummy_value()

    return signature, generate


def _require_literals(rows, dim) -> None:
    if not (isinstance(rows, types.IntegerLiteral) and isinstance(dim, types.IntegerLiteral)):
        raise RequireLiteralValue("rows and dim")


class _Loop:
    """A few vector words over an LLVM builder."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    @classmethod
    def open(cls, context: Any, builder: Any, signature: Any, arguments: Any, arrays: tuple[int, ...]) -> list[Any]:
        """The words, and the data pointers of the arguments that are arrays."""
        return [
            cls(builder),
            *(context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in arrays),
        ]

    def row(self, array: Any, at: Any, dim: int) -> list[Any]:
        """`dim` elements from `at` on, widened to float32, 16 to a register."""
        kind = FLOATS if array.type.pointee == FLOAT else SHORTS
        start = self.builder.bitcast(self.builder.gep(array, [at]), kind.as_pointer())
        loaded = [self.builder.load(self.builder.gep(start, [INT(i)]), align=2) for i in range(dim // LANES)]
        return loaded if kind is FLOATS else [self._widen(bits) for bits in loaded]

    def store(self, numbers: Any, array: Any, at: Any) -> None:
        target = self.builder.bitcast(self.builder.gep(array, [at]), FLOATS.as_pointer())
        self.builder.store(numbers, target, align=4)

    def fma(self, one: Any, other: Any, more: Any) -> Any:
        return self._call("llvm.fma.v16f32", FLOATS, [one, other, more])

    def sum(self, numbers: Any) -> Any:
        """Of all lanes, in any order."""
        kind = ir.FunctionType(FLOAT, [FLOAT, FLOATS])
        name = "llvm.vector.reduce.fadd.v16f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [FLOAT(-0.0), numbers], fastmath=("reassoc",))

    def everywhere(self, scalar: Any) -> Any:
        one = self.builder.insert_element(ir.Constant(FLOATS, ir.Undefined), scalar, INT(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(INTS, [0] * LANES))

    def _widen(self, bits: Any) -> Any:
        words = self.builder.zext(bits, INTS)
        return self.builder.bitcast(self.builder.shl(words, ir.Constant(INTS, [16] * LANES)), FLOATS)

    def _call(self, name: str, result: Any, arguments: list[Any]) -> Any:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)
