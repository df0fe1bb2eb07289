"""Where the time of a decode step goes, in milliseconds and in parts of the whole.

Usage: python -m benchmarks.step_breakdown [--json] [--batch 1 16] [--context 100 1000] [--dtype int4]
           [--backend auto] [--steps 40]

schedule: decide what runs and allocate its slots. prepare: the batch as tensors. products: all matrix products of the
layers. attention: paged attention. between: norms, rotary embedding with the KV write, SiLU, sums, embedding.
head: scores of every token. sample: from scores to tokens and texts. commit: move cursors, publish full blocks.
events: write the log. A figure is the mean of the steps; `plain ms` is the median step with no stopwatch in it, so
that what watching costs can be seen. Where all layers are one compiled call, it says itself how its time was shared.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.scaling import Case, decoding_engine, seconds_of_steps
from benchmarks.stopwatch import Stopwatch
from benchmarks.tables import Row, progress, show
from engine import Engine
from engine.model.compiled_steps import CompiledSteps
from engine.model.kv_store import KVStore
from engine.model.llama import DecoderLayer, LlamaModel
from engine.model.weights.load import LoadedModel, load_model
from engine.outputs import RequestOutput
from engine.runner import ModelRunner

PARTS = ("schedule", "prepare", "products", "attention", "between", "head", "sample", "commit", "events", "other")
COMPILED = "compiled"
WARM_UP = 5


def main() -> None:
    options = parse_options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loaded = load_model(options.model, dtype=options.dtype, device=torch.device(device))
    rows: list[Row] = []
    for context in options.context:
        for batch in options.batch:
            progress(f"batch {batch}, context {context}")
            rows.append(measure(loaded, options.backend, batch, context, options.steps))
    show(
        rows, as_json=options.json, command=f"python -m benchmarks.step_breakdown {' '.join(sys.argv[1:])}",
        notes=[f"{loaded.name} in {loaded.dtype} on {device}"],
    )  # fmt: skip


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--context", nargs="+", type=int, default=[100, 1000])
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--steps", type=int, default=40)
    return parser.parse_args()


def measure(loaded: LoadedModel, backend: str, batch: int, context: int, steps: int) -> Row:
    """One row: the same number of steps with no stopwatch, then with one in every part."""
    engine = decoding_engine(loaded, backend, Case(batch, context, 1), 16, 2 * (steps + WARM_UP) + 1)
    plain = statistics.median(seconds_of_steps(engine, steps))
    watch = Stopwatch(clock_of(loaded.model.device))
    step = put_stopwatches(engine, watch)
    for _ in range(WARM_UP):
        step()
    watch.seconds.clear()
    compiled = compiled_steps(engine)
    before = compiled.cycles.copy() if compiled else None
    for _ in range(steps):
        step()
    if compiled and before is not None:
        share_out(watch, compiled.cycles - before)
    total = sum(watch.seconds.values())
    row: Row = {"batch": batch, "context": context, "plain ms": round(1e3 * plain, 2)}
    row["watched ms"] = round(1e3 * total / steps, 2)
    row |= {f"{part} ms": round(1e3 * watch.seconds[part] / steps, 3) for part in PARTS}
    row["events %"] = round(100 * watch.seconds["events"] / total, 2)
    return row


def clock_of(device: torch.device) -> Callable[[], float]:
    """Seconds, after a GPU has done what it was given: else the launches would be timed and not the kernels."""

    def after_the_gpu() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return after_the_gpu if device.type == "cuda" else time.perf_counter


def put_stopwatches(engine: Engine, watch: Stopwatch) -> Callable[[], list[RequestOutput]]:
    """Time every part of this engine from now on; returns its timed `step`.

    Steps run eagerly on a GPU: a recorded one has no parts, and would go on with the model it was recorded with.
    """
    runner, store = engine.components.runner, engine.components.store
    assert isinstance(runner, ModelRunner) and isinstance(store, KVStore)
    if compiled_steps(engine):
        model = replace(runner.model, lm_head=watch.timed("head", runner.model.lm_head))
        runner.fast_path = fast_path = CompiledSteps(model, store)
        fast_path.forward = watch.timed(COMPILED, fast_path.forward)  # type: ignore[method-assign]
    else:
        runner.fast_path = None
        store.backend = replace(
            store.backend,
            paged_attention=watch.timed("attention", store.backend.paged_attention),  # type: ignore[arg-type]
        )
        runner.model = _timed_model(runner.model, watch)
    runner.prepare = watch.timed("prepare", runner.prepare)  # type: ignore[method-assign]
    runner.run = watch.timed("between", runner.run)  # type: ignore[method-assign]
    engine.scheduler.schedule = watch.timed("schedule", engine.scheduler.schedule)  # type: ignore[method-assign]
    engine.decoder.advance = watch.timed("sample", engine.decoder.advance)  # type: ignore[method-assign]
    engine.kv.commit = watch.timed("commit", engine.kv.commit)  # type: ignore[method-assign]
    engine.trace.append = watch.timed("events", engine.trace.append)  # type: ignore[method-assign]
    return watch.timed("other", engine.step)


def compiled_steps(engine: Engine) -> CompiledSteps | None:
    runner = engine.components.runner
    fast_path = runner.fast_path if isinstance(runner, ModelRunner) else None
    return fast_path if isinstance(fast_path, CompiledSteps) else None


def share_out(watch: Stopwatch, cycles: NDArray[np.int64]) -> None:
    """The time of the compiled call among its parts."""
    from kernels.decoder_layers.cpu import PARTS  # Numba is there: it compiled the call

    seconds = watch.seconds.pop(COMPILED)
    for part, count in zip(PARTS, cycles, strict=True):
        watch.seconds[part] += seconds * float(count / cycles.sum())


def _timed_model(model: LlamaModel, watch: Stopwatch) -> LlamaModel:
    def timed(layer: DecoderLayer) -> DecoderLayer:
        names = ("qkv", "attention_output", "gate_up", "down")
        return replace(layer, **{name: watch.timed("products", getattr(layer, name)) for name in names})  # type: ignore[arg-type]

    return replace(model, layers=tuple(map(timed, model.layers)), lm_head=watch.timed("head", model.lm_head))


if __name__ == "__main__":
    main()
