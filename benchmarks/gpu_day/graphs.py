"""Decode steps replayed as CUDA graphs against the same steps launched kernel by kernel: equal tokens, and how fast."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import torch

from benchmarks.bandwidth import copy_bandwidth, seconds_of
from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, NotHereError, Remark, Target
from benchmarks.scaling import Case, decoding_engine, seconds_of_steps
from engine import Engine
from engine.model.cuda_graphs import DecodeGraphs
from engine.model.weights.load import LoadedModel
from engine.runner import ModelRunner

BATCHES = (1, 16)
BESIDE_FLOOR = 1.3
CHAIN = 400
"""Kernels of the graph that shows what a node costs."""


def run(context: Context) -> Iterator[Finding]:
    """Raises AssertionError when recording failed or most texts differ in float32."""
    if not context.on_card:
        raise NotHereError("CUDA graphs exist on GPUs only")
    for dtype in ("float32", context.half):
        yield from compare(context, context.speed_model(dtype))
    yield from beside_floor(context, context.speed_model(context.half))


def compare(context: Context, loaded: LoadedModel) -> Iterator[Finding]:
    """Both ways of the same steps, whose sums differ by rounding: ties may fall the other way, mostly in two bytes.

    Raises AssertionError when most texts differ in float32.
    """
    for batch in BATCHES:
        case = Case(batch, context.sizes.decode_context, 1)
        steps = context.sizes.steps
        engines = {
            name: decoding_engine(loaded, "auto", case, 16, steps + 3, enforce_eager=name == "eager")
            for name in ("eager", "graphs")
        }
        record(engines["graphs"])
        medians = {name: 1e3 * statistics.median(seconds_of_steps(engine, steps)) for name, engine in engines.items()}
        tokens = {name: tokens_after_a_step(engine) for name, engine in engines.items()}
        equal = sum(eager == replayed for eager, replayed in zip(*tokens.values(), strict=True))
        yield Measured({
            "model": loaded.name, "dtype": loaded.dtype, "batch": batch, "eager ms": medians["eager"],
            "graphs ms": medians["graphs"], "times as fast": medians["eager"] / medians["graphs"],
            "equal texts": f"{equal} of {batch}",
        })  # fmt: skip
        if loaded.dtype == "float32" and 2 * equal < batch:
            raise AssertionError(f"in float32 replayed steps give other tokens in {batch - equal} of {batch} texts")


def record(engine: Engine) -> None:
    """Record every size now. Raises AssertionError when that fails or the engine has no graphs."""
    runner = engine.components.runner
    assert isinstance(runner, ModelRunner) and isinstance(runner.fast_path, DecodeGraphs), "the engine has no graphs"
    runner.capture_model()
    assert not runner.fast_path.has_failed, "recording failed: the log above says why"


def tokens_after_a_step(engine: Engine) -> list[tuple[int, ...]]:
    """All that each sequence has generated, after one step more."""
    return [output.outputs[0].token_ids for output in engine.step()]


def beside_floor(context: Context, loaded: LoadedModel) -> Iterator[Finding]:
    """A step at batch 1 over the least it can take: its nodes, each as long as one that does nothing, or its bytes."""
    engine = decoding_engine(loaded, "auto", Case(1, context.sizes.decode_context, 1), 16, 2 * context.sizes.steps + 3)
    record(engine)
    step = statistics.median(seconds_of_steps(engine, context.sizes.steps))
    nodes = nodes_of_a_step(engine)
    if not nodes:
        yield Remark("The profiler counts no kernels here, so that there is no floor to hold a step against.")
        return
    node = seconds_a_node(context.device)
    weights = sum(tensor.nbytes for tensor in _weights(loaded))
    reading = weights / copy_bandwidth(context.device)
    floor = max(nodes * node, reading)
    yield Measured({
        "step ms": 1e3 * step, "nodes": nodes, "us a node": 1e6 * node, "nodes ms": 1e3 * nodes * node,
        "weights MB": weights / 1e6, "reading them ms": 1e3 * reading,
    })  # fmt: skip
    yield Target("a step at batch 1 over its floor", step / floor, BESIDE_FLOOR, at_least=False, on_card=True)


def nodes_of_a_step(engine: Engine) -> int:
    """Kernels, copies and fills that one step starts on the GPU, by the profiler; 0 where it cannot see them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        engine.step()
        torch.cuda.synchronize()
    return sum(str(event.device_type).endswith("CUDA") for event in profile.events() or ())


def seconds_a_node(device: torch.device) -> float:
    """Of a graph of kernels that wait for each other and do nothing else."""
    number = torch.zeros(1, device=device)
    graph = torch.cuda.CUDAGraph()
    number.add_(1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(CHAIN):
            number.add_(1)
    return min(seconds_of(graph.replay, device) for _ in range(5)) / CHAIN


def _weights(loaded: LoadedModel) -> Iterator[torch.Tensor]:
    """What a step reads: everything but the embedding, of which it reads a row, unless that is the head as well."""
    model = loaded.model
    for part in (*model.layers, model.lm_head):
        for value in vars(part).values():
            yield from (held for held in (value, getattr(value, "weight", None)) if isinstance(held, torch.Tensor))
