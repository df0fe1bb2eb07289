"""The rows that are times of this machine, Figs. 18 and 19: they run alone, one after another."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from itertools import product

import torch

from benchmarks.attention import Case, line_up
from benchmarks.paper.clock import times_in_turns
from benchmarks.paper.model_steps import ModelSteps
from course.paper.block_sizes import (
    BATCHES,
    BLOCK_SIZES,
    CONTEXTS,
    HEAD_DIM,
    HEADS,
    REQUEST_TOKENS,
    STEP_CONTEXT,
    STEP_SEQUENCES,
    AttentionTimes,
    PreemptionTimes,
    SwapCosts,
    judge_figure_18a,
    judge_figure_19a,
    measure_figure_18b,
    measure_figure_19b,
)
from course.paper.record import Measured, Setup
from course.paper.serving import PAPER_BLOCK_SIZE
from kernels.backend import select_backend

CONTIGUOUS = "contiguous SDPA"


def run_figure_18a(_setup: Setup) -> Measured:
    """Attention of all contestants at every batch and context."""
    return judge_figure_18a(
        {(batch, context): attention_times(batch, context) for batch, context in product(BATCHES, CONTEXTS)}
    )


def attention_times(batch: int, context: int) -> AttentionTimes:
    """Our kernel over shuffled blocks of 16, over one block a sequence, and PyTorch's over contiguous tensors."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ours = select_backend("auto", device).name
    cases = [
        Case(batch, context, block_size, "bfloat16", "decode", (HEADS, HEADS), HEAD_DIM)
        for block_size in (PAPER_BLOCK_SIZE, context)
    ]
    paged, one_block = (line_up(case, device, False, [ours]) for case in cases)
    layers = range(cases[0].num_layers(device))
    taken = times_in_turns(
        {
            "paged": lambda: [paged[ours](i) for i in layers],
            "one block": lambda: [one_block[ours](i) for i in layers],
            "contiguous": lambda: [paged[CONTIGUOUS](i) for i in layers],
        }
    )
    return AttentionTimes(*([each / len(layers) for each in seconds] for seconds in taken.values()))


def run_figure_18b(setup: Setup) -> Measured:
    """The cost of a step by block size, and the simulation with it."""
    return measure_figure_18b(setup, step_costs(setup.times.model))


def step_costs(model: str) -> dict[int, float]:
    """Seconds of one decode step by block size, over that with blocks of 16."""
    slots = STEP_SEQUENCES * STEP_CONTEXT
    steps = {size: ModelSteps(model, size, slots) for size in BLOCK_SIZES}
    items = {size: each.decode(STEP_SEQUENCES, STEP_CONTEXT) for size, each in steps.items()}
    taken = times_in_turns({size: lambda s=size: steps[s].run(items[s]) for size in BLOCK_SIZES})  # type: ignore[misc]
    medians = {size: statistics.median(taken[size]) for size in BLOCK_SIZES}
    return {size: median / medians[PAPER_BLOCK_SIZE] for size, median in medians.items()}


def run_figure_19a(setup: Setup) -> Measured:
    """Recomputing and swapping one request, by block size."""
    return judge_figure_19a(preemption_times(setup))


def run_figure_19b(setup: Setup) -> Measured:
    """What a block costs to swap, and the simulation with it."""
    return measure_figure_19b(setup, [SwapCosts.of(size, times) for size, times in preemption_times(setup).items()])


def preemption_times(setup: Setup) -> dict[int, PreemptionTimes]:
    """Of one request of `REQUEST_TOKENS`, by block size; measured once for both parts of Fig. 19."""
    if preemption_times not in setup.known:
        setup.known[preemption_times] = measure_preemption_times(setup.times.model)
    times: dict[int, PreemptionTimes] = setup.known[preemption_times]
    return times


def measure_preemption_times(model: str) -> dict[int, PreemptionTimes]:
    """The same, measured: all cases in turns."""
    cases: dict[tuple[int, str], Callable[[], object]] = {}
    for size in BLOCK_SIZES:
        width = -(-REQUEST_TOKENS // size)
        steps = ModelSteps(model, size, width * size)
        pairs, prompt = [(i, i) for i in range(width)], steps.prefill(REQUEST_TOKENS)
        cases[size, "recompute"] = lambda steps=steps, prompt=prompt: steps.run(prompt)  # type: ignore[misc]
        cases[size, "out"] = lambda steps=steps, pairs=pairs: steps.store.swap_out(pairs)  # type: ignore[misc]
        cases[size, "in"] = lambda steps=steps, pairs=pairs: steps.store.swap_in(pairs)  # type: ignore[misc]
    taken = times_in_turns(cases)
    return {
        size: PreemptionTimes(taken[size, "recompute"], taken[size, "in"], taken[size, "out"]) for size in BLOCK_SIZES
    }


TIMED: Mapping[str, Callable[[Setup], Measured]] = {
    "fig18a": run_figure_18a,
    "fig18b": run_figure_18b,
    "fig19a": run_figure_19a,
    "fig19b": run_figure_19b,
}
"""By key of the record."""
