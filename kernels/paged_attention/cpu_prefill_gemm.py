"""The two products of prefill attention on registers: scores of a panel of queries, and its weighted sums of values.

A *panel* is ROWS query rows turned on their side: one register holds the same element of 16 neighbouring rows. So
every sum, maximum and weight of the softmax is a column of lanes, and none ever has to be added up across them. Keys
and values stay as the cache has them: one of their elements is spread over all lanes of a register, and meets every
row of the panel.

                        panel [steps, ROWS]
                        step 0    0..15  16..31  32..47  48..63
                        step 1    0..15  16..31  32..47  48..63
                        ...
    tile                out [TILE_ROWS, ROWS]
    t0  s0 s1 s2 ..     t0      |=====| |=====| |=====| |=====|     each |=====| is one register of sums: they stay
    t1  s0 s1 s2 ..     t1      |=====| |=====| |=====| |=====|     where they are while the steps go by, and each
    ..                  ..      |=====| |=====| |=====| |=====|     loaded register serves several of them

For scores a step is an element of head_dim and t a key; for sums of values a step is a key and t an element of
head_dim. With `vdpbf16ps` a step is two of them, in the halves of a 32-bit word.

Of a panel that holds few rows only the first register of each step is worked on (`vectors` 1): a lane's sums are the
same, instruction for instruction.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from kernels.paged_attention.cpu_decode_avx512 import has_wide_registers
from kernels.vector_builder import FLOAT, INT, VectorBuilder

LANES, VECTORS, TILE_ROWS = (16, 4, 6) if has_wide_registers() else (8, 2, 4)
"""Lanes of a register, registers side by side, tile rows in work: 24 of 32 registers hold sums, or 8 of 16."""
ROWS = LANES * VECTORS

FLOATS, WORDS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)


@intrinsic
def score_panel(_context, panel, panel_at, keys, keys_at, width, scores, scores_at, vectors):
    """scores[t, row] = keys[t] . panel[row] for TILE_ROWS keys and the rows of so many registers, a literal.

    panel  [width, ROWS] from panel_at on; keys [TILE_ROWS, width]; scores [TILE_ROWS, ROWS] float32
    panel and keys are float32, or uint32 pairs of bfloat16
    """
    size, vectors = types.uintp, _literal(vectors)
    signature = types.void(panel, size, keys, size, size, scores, size, vectors)

    def generate(context, builder, signature, arguments):
        b, panel, keys, scores = VectorBuilder.open(context, builder, signature, arguments, (0, 2, 5))
        _, panel_at, _, keys_at, width, _, scores_at, _ = arguments
        sums = _Accumulators(b, [[b.constant(0.0, FLOATS)] * vectors.literal_value] * TILE_ROWS)
        sums.add_products(b.gep(panel, panel_at), b.gep(keys, keys_at), width, size_one(width), width)
        sums.store(b.gep(scores, scores_at))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_panel(_context, weights, values, values_at, stride, steps, shrink, out, out_at, vectors):
    """out[t, row] = out[t, row] * shrink[row] + sum over the steps s of values[s, t] * weights[s, row].

    For the rows of so many registers, a literal.

    weights [steps, ROWS]; values [steps, TILE_ROWS], rows `stride` apart; shrink [ROWS]; out [TILE_ROWS, ROWS] float32
    """
    size, vectors = types.uintp, _literal(vectors)
    signature = types.void(weights, values, size, size, size, shrink, out, size, vectors)

    def generate(context, builder, signature, arguments):
        b, weights, values, shrink, out = VectorBuilder.open(context, builder, signature, arguments, (0, 1, 5, 6))
        _, _, values_at, stride, steps, _, _, out_at, _ = arguments
        columns = range(vectors.literal_value)
        out = b.gep(out, out_at)
        factors = [_load(b, shrink, i * LANES) for i in columns]
        scaled = [
            [builder.fmul(_load(b, out, t * ROWS + i * LANES), factors[i]) for i in columns] for t in range(TILE_ROWS)
        ]
        sums = _Accumulators(b, scaled)
        sums.add_products(weights, b.gep(values, values_at), size_one(stride), stride, steps)
        sums.store(out)
        return context.get_dummy_value()

    return signature, generate


def _literal(vectors: Any) -> Any:
    if not isinstance(vectors, types.IntegerLiteral):
        raise RequireLiteralValue("vectors")
    return vectors


def size_one(like: Any) -> Any:
    """A literal 1 of the type of `like`, for an intrinsic's argument."""
    return like.type(1)


class _Accumulators:
    """TILE_ROWS rows of registers of float32 sums, of some or all VECTORS of a panel."""

    def __init__(self, vectors: VectorBuilder, start: list[list[Any]]) -> None:
        self.vectors = vectors
        self.slots = [[cgutils.alloca_once(vectors.builder, FLOATS) for _ in row] for row in start]
        self._each(lambda slot, t, i: vectors.builder.store(start[t][i], slot))

    def add_products(self, panel: Any, tile: Any, row: Any, step: Any, steps: Any) -> None:
        """Over all steps: sums[t] += tile[t * row + s * step] * panel[s]."""
        b, builder = self.vectors, self.vectors.builder
        with cgutils.for_range(builder, steps) as loop:
            here = b.gep(panel, builder.mul(loop.index, row.type(ROWS)))
            columns = [_load(b, here, i * LANES) for i in range(len(self.slots[0]))]
            at = b.gep(tile, builder.mul(loop.index, step))
            for t, slots in enumerate(self.slots):
                scalar = builder.load(b.gep(at, builder.mul(row, row.type(t))))
                element = b.splat(scalar, ir.VectorType(scalar.type, LANES))
                for slot, column in zip(slots, columns, strict=True):
                    builder.store(b.fma(element, column, builder.load(slot)), slot)

    def store(self, out: Any) -> None:
        b = self.vectors
        self._each(lambda slot, t, i: b.store(b.builder.load(slot), b.gep(out, t * ROWS + i * LANES)))

    def _each(self, visit: Any) -> None:
        for t, row in enumerate(self.slots):
            for i, slot in enumerate(row):
                visit(slot, t, i)


def _load(b: VectorBuilder, array: Any, at: int) -> Any:
    """A register of `array` from element `at` on."""
    return b.load(b.gep(array, at), FLOATS if array.type.pointee == FLOAT else WORDS)
