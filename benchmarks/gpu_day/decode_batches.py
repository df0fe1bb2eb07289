"""Decode steps of the whole engine, from one sequence to many."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured
from benchmarks.scaling import Case, decoding_engine, seconds_of_steps
from engine.model.cuda_graphs import RECORD_AFTER


def run(context: Context) -> Iterator[Finding]:
    loaded = context.speed_model(context.dtype)
    sizes = context.sizes
    steps_before = RECORD_AFTER if context.on_card else 0  # its graph is recorded by then
    for batch in sizes.decode_batches:
        case = Case(batch, sizes.decode_context, 1)
        engine = decoding_engine(loaded, "auto", case, 16, steps_before + sizes.steps + 3)
        for _ in range(steps_before):
            engine.step()
        seconds = seconds_of_steps(engine, sizes.steps)
        median = statistics.median(seconds)
        yield Measured({
            "model": loaded.name, "dtype": loaded.dtype, "batch": batch, "context": sizes.decode_context,
            "step ms": 1e3 * median, "slowest ms": 1e3 * max(seconds), "tokens/s": batch / median,
        })  # fmt: skip
