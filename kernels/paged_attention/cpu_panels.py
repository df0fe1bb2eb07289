"""The two products of prefill attention on registers: scores of a panel of queries, and its weighted sums of values.

A *panel* is ROWS query rows turned on their side: one register holds the same element of 16 neighbouring rows. So
every sum, maximum and weight of the softmax is a column of lanes, and none ever has to be added up across them. Keys
and values stay as the cache has them: one of their elements is spread over all lanes of a register, and meets every
row of the panel.

                        panel [steps, ROWS]
                        step 0    0..15  16..31  32..47  48..63
                        step 1    0..15  16..31  32..47  48..63
                        ...
    tile                out [BESIDE, ROWS]
    t0  s0 s1 s2 ..     t0      |=====| |=====| |=====| |=====|     each |=====| is one register of sums: they stay
    t1  s0 s1 s2 ..     t1      |=====| |=====| |=====| |=====|     where they are while the steps go by, and each
    ..                  ..      |=====| |=====| |=====| |=====|     loaded register serves several of them

For scores a step is an element of head_dim and t a key; for sums of values a step is a key and t an element of
head_dim. With `vdpbf16ps` a step is two of them, in the halves of a 32-bit word.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from kernels.paged_attention.cpu_vectors import BFLOATS, has_wide_registers

LANES, VECTORS, BESIDE = (16, 4, 6) if has_wide_registers() else (8, 2, 4)
"""Lanes of a register, registers side by side, tile rows in work: 24 of 32 registers hold sums, or 8 of 16."""
ROWS = LANES * VECTORS

FLOAT, WORD = ir.FloatType(), ir.IntType(32)
FLOATS, WORDS = ir.VectorType(FLOAT, LANES), ir.VectorType(WORD, LANES)


@intrinsic
def score_panel(_context, panel, panel_at, keys, keys_at, width, scores, scores_at):
    """scores[t, row] = keys[t] . panel[row] for BESIDE keys.

    panel  [width, ROWS] from panel_at on; keys [BESIDE, width]; scores [BESIDE, ROWS] float32
    panel and keys are float32, or uint32 words of two bfloat16
    """
    size = types.uintp
    signature = types.void(panel, size, keys, size, size, scores, size)

    def generate(context, builder, signature, arguments):
        panel, keys, scores = _data(context, builder, signature, arguments, (0, 2, 5))
        _, panel_at, _, keys_at, width, _, scores_at = arguments
        sums = _Sums(builder, [[ir.Constant(FLOATS, [0.0] * LANES)] * VECTORS] * BESIDE)
        sums.add_products(builder.gep(panel, [panel_at]), builder.gep(keys, [keys_at]), width, size_one(width), width)
        sums.store(builder.gep(scores, [scores_at]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_panel(_context, weights, values, values_at, stride, steps, shrink, out, out_at):
    """out[t, row] = out[t, row] * shrink[row] + sum over the steps s of values[s, t] * weights[s, row].

    weights [steps, ROWS]; values [steps, BESIDE], rows `stride` apart; shrink [ROWS]; out [BESIDE, ROWS] float32
    """
    size = types.uintp
    signature = types.void(weights, values, size, size, size, shrink, out, size)

    def generate(context, builder, signature, arguments):
        weights, values, shrink, out = _data(context, builder, signature, arguments, (0, 1, 5, 6))
        _, _, values_at, stride, steps, _, _, out_at = arguments
        out = builder.gep(out, [out_at])
        factors = [_load(builder, shrink, i * LANES) for i in range(VECTORS)]
        sums = _Sums(
            builder,
            [
                [builder.fmul(_load(builder, out, t * ROWS + i * LANES), factors[i]) for i in range(VECTORS)]
                for t in range(BESIDE)
            ],
        )
        sums.add_products(weights, builder.gep(values, [values_at]), size_one(stride), stride, steps)
        sums.store(out)
        return context.get_dummy_value()

    return signature, generate


def size_one(like: Any) -> Any:
    return like.type(1)


class _Sums:
    """BESIDE x VECTORS registers of float32 sums."""

    def __init__(self, builder: Any, start: list[list[Any]]) -> None:
        self.builder = builder
        self.slots = [[cgutils.alloca_once(builder, FLOATS) for _ in row] for row in start]
        self._each(lambda slot, t, i: builder.store(start[t][i], slot))

    def add_products(self, panel: Any, tile: Any, row: Any, step: Any, steps: Any) -> None:
        """Over all steps: sums[t] += tile[t * row + s * step] * panel[s]."""
        b = self.builder
        with cgutils.for_range(b, steps) as loop:
            here = b.gep(panel, [b.mul(loop.index, row.type(ROWS))])
            columns = [_load(b, here, i * LANES) for i in range(VECTORS)]
            at = b.gep(tile, [b.mul(loop.index, step)])
            for t, slots in enumerate(self.slots):
                element = _everywhere(b, b.load(b.gep(at, [b.mul(row, row.type(t))])))
                for slot, column in zip(slots, columns, strict=True):
                    b.store(_multiply_add(b, element, column, b.load(slot)), slot)

    def store(self, out: Any) -> None:
        b = self.builder

        def write(slot: Any, t: int, i: int) -> None:
            target = b.bitcast(b.gep(out, [WORD(t * ROWS + i * LANES)]), FLOATS.as_pointer())
            b.store(b.load(slot), target, align=4)

        self._each(write)

    def _each(self, visit: Any) -> None:
        for t, row in enumerate(self.slots):
            for i, slot in enumerate(row):
                visit(slot, t, i)


def _multiply_add(b: Any, one: Any, other: Any, more: Any) -> Any:
    if one.type == FLOATS:
        return _call(b, f"llvm.fma.v{LANES}f32", FLOATS, [one, other, more])
    pairs = [b.bitcast(words, BFLOATS) for words in (one, other)]
    return _call(b, "llvm.x86.avx512bf16.dpbf16ps.512", FLOATS, [more, *pairs])


def _data(context: Any, builder: Any, signature: Any, arguments: Any, positions: tuple[int, ...]) -> list[Any]:
    """Where the arrays among the arguments begin."""
    return [context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in positions]


def _load(b: Any, array: Any, at: int) -> Any:
    kind = FLOATS if array.type.pointee == FLOAT else WORDS
    return b.load(b.bitcast(b.gep(array, [WORD(at)]), kind.as_pointer()), align=4)


def _everywhere(b: Any, scalar: Any) -> Any:
    kind = ir.VectorType(scalar.type, LANES)
    one = b.insert_element(ir.Constant(kind, ir.Undefined), scalar, WORD(0))
    return b.shuffle_vector(one, one, ir.Constant(WORDS, [0] * LANES))


def _call(b: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)
