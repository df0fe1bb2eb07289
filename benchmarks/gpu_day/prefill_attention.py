"""Prefill attention beside scaled_dot_product_attention and FlexAttention over contiguous keys and values."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.attention import Case
from benchmarks.gpu_day.attention_race import milliseconds, our_backend, race_with_flex
from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, Remark


def run(context: Context) -> Iterator[Finding]:
    sizes = context.sizes
    ours = our_backend(context)
    for batch, length in sizes.prefill_attention:
        case = Case(batch, length, 16, context.dtype, "prefill", sizes.heads, sizes.head_dim)
        times, flex_problem = race_with_flex(case, context)
        operations = 4 * batch * sizes.heads[0] * sizes.head_dim * length * (length + 1) / 2
        yield Measured({
            "batch": batch, "context": length, "dtype": case.dtype, **milliseconds(times),
            "paged:contiguous": times[ours] / times["contiguous SDPA"], "TFLOP/s": operations / times[ours] / 1e12,
        })  # fmt: skip
        if flex_problem:
            yield Remark(flex_problem)
