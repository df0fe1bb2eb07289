"""Figs. 18 and 19: what the size of a block costs, in attention, in serving, and when a request makes room."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

from course.paper.batched import CLOCKS, Saturation, ratios, run_saturated
from course.paper.capacity import num_slots
from course.paper.record import NO_NUMBER, Curve, Measured, Quantity, Record, Setup
from course.paper.serving import PAPER_BLOCK_SIZE, PagedMemory, Step, saturate
from course.paper.step_times import StepTimes
from course.paper.workloads import FAMILIES, MIXES, draw_requests
from engine.baselines.arrivals import SHAREGPT
from engine.i18n import N_

BLOCK_SIZE, CONTEXT = N_("block size"), N_("context")
BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
BATCHES, CONTEXTS = (8, 32), (64, 128, 256)
"""Of Fig. 18a."""
SLOWER = {(8, 64): 44, (8, 128): 25, (8, 256): 35, (32, 64): 26, (32, 128): 19, (32, 256): 21}
"""Percent by which the paged kernel is slower, from the curves of Fig. 18a: (batch, context)."""
BEST = {"ShareGPT": (16, 128), "Alpaca": (16, 32)}
"""The best block sizes in the text on Fig. 18b, from and to."""
HEADS, HEAD_DIM = 40, 128
"""OPT-13B's."""
REQUEST_TOKENS = round(SHAREGPT.mean_input + SHAREGPT.mean_output)
"""Tokens of the request that makes room: a mean one of ShareGPT. The paper does not say how long its own was."""
STEP_SEQUENCES, STEP_CONTEXT = 32, 512
"""The step whose time is compared by block size: as many requests as ran at once in Fig. 13a, about a pool in all."""


@dataclass(frozen=True, slots=True)
class AttentionTimes:
    """Seconds of attention in one layer, in each round: our kernel over blocks of 16 and over one block a sequence,
    and PyTorch's over contiguous tensors.
    """

    paged: list[float]
    one_block: list[float]
    contiguous: list[float]


def judge_figure_18a(times: Mapping[tuple[int, int], AttentionTimes]) -> Measured:
    """By (batch, context): how much slower the paged kernel is, in percent, in each round; a curve of each batch."""
    values: dict[str, list[float]] = {}
    rows: dict[int, list[dict[str, float | None]]] = {}
    for (batch, context), each in times.items():
        for key, others in (("one", each.one_block), ("torch", each.contiguous)):
            slower = [100 * (ratio - 1) for ratio in ratios(each.paged, others)]
            values[f"{key}_{batch}_{context}"] = slower
        rows.setdefault(batch, []).append(
            {
                CONTEXT: context,
                N_("paged, blocks of 16"): 1e6 * statistics.median(each.paged),
                N_("our kernel, one block a sequence"): 1e6 * statistics.median(each.one_block),
                N_("PyTorch, contiguous"): 1e6 * statistics.median(each.contiguous),
            }
        )
    name = N_("attention of one layer")
    return Measured(values, [Curve(name, CONTEXT, N_("µs"), lines, str(batch)) for batch, lines in rows.items()])


def measure_figure_18b(setup: Setup, cost: Mapping[int, float]) -> Measured:
    """Rates of a full memory by block size, over the rate with blocks of 16, by both clocks.

    cost: time of a step by block size, over that with blocks of 16.
    """
    slots, traces = num_slots("13B"), tuple(product(FAMILIES, setup.seeds))
    values: dict[str, list[float]] = {}
    rows: dict[str, list[dict[str, float | None]]] = {
        clock: [{BLOCK_SIZE: float(size)} for size in BLOCK_SIZES] for clock in CLOCKS
    }
    for mix in MIXES:
        count = setup.num_requests(mix, slots)
        tasks = {
            (size, trace): Saturation("Paged", mix, *trace, slots, count, size)
            for size, trace in product(BLOCK_SIZES, traces)
        }
        results = setup.results(run_saturated, tasks.values())
        for clock in CLOCKS:
            over_16 = {size: list[float]() for size in BLOCK_SIZES}
            for trace in traces:
                rates = {size: results[tasks[size, trace]].rates[clock] / cost[size] for size in BLOCK_SIZES}
                values.setdefault(f"{clock}_{mix}_best", []).append(max(rates, key=lambda size: rates[size]))
                for size in BLOCK_SIZES:
                    over_16[size].append(rates[size] / rates[PAPER_BLOCK_SIZE])
            values[f"{clock}_{mix}_256"] = over_16[BLOCK_SIZES[-1]]
            for row, size in zip(rows[clock], BLOCK_SIZES, strict=True):
                row[mix] = statistics.median(over_16[size])
    over = N_("over blocks of 16")
    steps: list[dict[str, float | None]] = [
        {BLOCK_SIZE: float(size), N_("time of a step"): cost[size]} for size in BLOCK_SIZES
    ]
    curves = [Curve(RATE[clock], BLOCK_SIZE, over, rows[clock]) for clock in CLOCKS]
    return Measured(values, [*curves, Curve(N_("time of a step, measured"), BLOCK_SIZE, over, steps)])


@dataclass(frozen=True, slots=True)
class PreemptionTimes:
    """Seconds to make room for a request of `REQUEST_TOKENS` and bring it back, in each round."""

    recompute: list[float]
    swap_in: list[float]
    swap_out: list[float]


def judge_figure_19a(times: Mapping[int, PreemptionTimes]) -> Measured:
    """Recomputing one request's keys and values against moving its blocks out and back, in each round."""
    rows: list[dict[str, float | None]] = []
    for size, each in times.items():
        recompute, swap_in, swap_out = (
            1e3 * statistics.median(seconds) for seconds in (each.recompute, each.swap_in, each.swap_out)
        )
        rows.append(
            {
                BLOCK_SIZE: size,
                N_("recompute"): recompute,
                N_("swap in"): swap_in,
                N_("swap out"): swap_out,
                N_("swap in and out"): swap_in + swap_out,
            }
        )
    values: dict[str, list[float]] = {"constant": [], "small": [], "most": [], "smallest": []}
    for number in range(len(next(iter(times.values())).recompute)):
        recomputes = [each.recompute[number] for each in times.values()]
        swaps = [each.swap_in[number] + each.swap_out[number] for each in times.values()]
        values["constant"].append(max(recomputes) / min(recomputes))
        values["small"].append(swaps[0] / swaps[-1])
        values["most"].append(max(ratios(recomputes, swaps)))
        values["smallest"].append(recomputes[0] / swaps[0])
    return Measured(values, [Curve(N_("one request"), BLOCK_SIZE, N_("ms"), rows)])


@dataclass(frozen=True, slots=True)
class SwapCosts:
    """Seconds to move one block of so many slots to the CPU and back."""

    block_size: int
    out_seconds: float
    in_seconds: float

    @classmethod
    def of(cls, block_size: int, times: PreemptionTimes) -> SwapCosts:
        """From the times of a request's blocks."""
        num_blocks = -(-REQUEST_TOKENS // block_size)
        medians = (statistics.median(seconds) / num_blocks for seconds in (times.swap_out, times.swap_in))
        return cls(block_size, *medians)


@dataclass(frozen=True, slots=True)
class PreemptionTask:
    """A full memory that makes room in one way. costs: of its blocks. swaps: else what was preempted is recomputed."""

    family: str
    seed: int
    num_requests: int
    costs: SwapCosts
    swaps: bool


def rate_with_preemption(job: tuple[PreemptionTask, StepTimes]) -> float:
    """Requests a second, with the step times of this machine."""
    task, times = job
    costs = task.costs
    requests = draw_requests(SHAREGPT, task.family, task.num_requests, task.seed)
    slots = num_slots("13B")
    memory = PagedMemory(slots, costs.block_size, swap=task.swaps)

    def seconds(step: Step) -> float:
        return times(step) + step.swapped_out * costs.out_seconds + step.swapped_in * costs.in_seconds

    return saturate(memory, requests, {"measured": seconds}, slots).requests_per_second["measured"]


def measure_figure_19b(setup: Setup, costs: Sequence[SwapCosts]) -> Measured:
    """The rate with recomputing over that with swapping, by block size."""
    count = setup.num_requests("ShareGPT", num_slots("13B"))
    tasks = {
        (each.block_size, swaps): [
            PreemptionTask(family, seed, count, each, swaps) for family, seed in product(FAMILIES, setup.seeds)
        ]
        for each, swaps in product(costs, (False, True))
    }
    results = setup.results(rate_with_preemption, chain.from_iterable(tasks.values()))
    values = {
        str(each.block_size): ratios(*([results[t] for t in tasks[each.block_size, swaps]] for swaps in (False, True)))
        for each in costs
    }
    rows: list[dict[str, float | None]] = [
        {BLOCK_SIZE: float(size), N_("recompute over swap"): statistics.median(over)}
        for size, over in ((each.block_size, values[str(each.block_size)]) for each in costs)
    ]
    return Measured(values, [Curve(N_("rate with recomputing"), BLOCK_SIZE, N_("over that with swapping"), rows)])


OVER_ONE = N_("paged slower than the same kernel over one block a sequence, percent")
OVER_TORCH = N_("paged slower than PyTorch's contiguous attention, percent")


def _figure_18a() -> tuple[Quantity, ...]:
    quantities = []
    for (batch, context), percent in SLOWER.items():
        low, high, neutral = (20.0, 26.0, 0.0) if batch == 32 else (None, None, None)
        of, key = f"{batch} x {context}", f"{batch}_{context}"
        quantities += [
            Quantity(f"one_{key}", OVER_ONE, str(percent), "V", low, high, neutral, digits=0, of=of),
            Quantity(f"torch_{key}", OVER_TORCH, str(percent), "V", low, high, neutral, digits=0, of=of),
        ]
    return tuple(quantities)


RATE = {
    "measured": N_("rate, step times of this machine"),
    "equal": N_("rate, every step equally long"),
}
BEST_SIZE = {
    "measured": N_("best block size, step times of this machine"),
    "equal": N_("best block size, every step equally long"),
}
WITH_256 = {
    "measured": N_("rate with blocks of 256 over blocks of 16, step times of this machine"),
    "equal": N_("rate with blocks of 256 over blocks of 16, every step equally long"),
}


def _figure_18b() -> tuple[Quantity, ...]:
    quantities = []
    for clock, (mix, (low, high)) in product(CLOCKS, BEST.items()):
        best = Quantity(f"{clock}_{mix}_best", BEST_SIZE[clock], f"{low} – {high}", "T", low, high, digits=0, of=mix)
        quantities += [best, Quantity(f"{clock}_{mix}_256", WITH_256[clock], NO_NUMBER, "", of=mix)]
    return tuple(quantities)


def _figure_19b() -> tuple[Quantity, ...]:
    name = N_("blocks: rate with recomputing over that with swapping")
    bounds: dict[int, tuple[str, float | None, float | None]] = {
        1: ("> 1", 1.0, None), 16: ("comparable", None, None), 32: ("comparable", None, None),
        64: ("comparable", None, None), 256: ("< 1", None, 1.0),
    }  # fmt: skip
    return tuple(
        Quantity(str(size), name, printed, "T", low, high, of=str(size))
        for size, (printed, low, high) in bounds.items()
    )


RECORDS = (
    Record(
        key="fig18a",
        place=N_("Fig. 18a, section 7.1"),
        title=N_("Attention, paged and contiguous"),
        quantities=_figure_18a(),
        setup=(
            N_(
                "Batch x context, OPT-13B's heads, bfloat16. The paper compares with FasterTransformer's "
                "kernel on a GPU. Here, on this machine, our own kernel reads one block as long as the "
                "sequence; PyTorch's attention is shown, too. Five rounds in turns, one thread; the curves are medians."
            ),
            N_("Judged against both: the text's 20 to 26 percent at batch 32."),
        ),
        measure=None,
        why=N_(
            "Against the same kernel over one block a sequence the difference is what the block table costs. Against "
            "another kernel over contiguous memory, which is what the paper compares with, it is also what else "
            "differs between two kernels."
        ),
        two_readings=N_(
            "The text says 20 to 26 percent for both batches. In the figure only batch 32 is there (19 "
            "to 26 percent); at batch 8 it is 25 to 44 percent."
        ),
    ),
    Record(
        key="fig18b",
        place=N_("Fig. 18b, section 7.2"),
        title=N_("The best block size"),
        quantities=_figure_18b(),
        setup=(
            N_(
                "The paper plots latency at one rate, near saturation, and names neither rate nor model. "
                "Here it is the rate of a full memory of OPT-13B's slots."
            ),
            N_(
                "Small blocks cost time in the kernel, large ones memory. How a step's time depends on the block size "
                "is measured (32 sequences of 512 tokens), the memory is simulated, with the traces of Fig. 12."
            ),
            N_(
                "Two clocks, as in Fig. 12, each times what the block size costs. Step times of this machine also have "
                "what a full memory preempts and computes again; with steps that all take equally long that is free."
            ),
        ),
        measure=None,
        why=N_(
            "On a CPU small blocks cost the kernel less than on the paper's GPU, where a warp reads one block. And "
            "where computing decides, not memory, what large blocks waste costs little."
        ),
    ),
    Record(
        key="fig19a",
        place=N_("Fig. 19a, section 7.3"),
        title=N_("Recompute against swap"),
        quantities=(
            Quantity("constant", N_("recompute: slowest block size over fastest"), "1.08", "V", of=""),
            Quantity("small", N_("swap: blocks of 1 over blocks of 256"), "4.11", "D", 4.11, None, 1.0),
            Quantity("most", N_("recompute over swap in and out, at most"), "1.2", "T", None, 1.2),
            Quantity("smallest", N_("recompute over swap in and out, blocks of 1"), "0.26", "V"),
        ),
        setup=(
            N_(
                "One request of 499 tokens, a mean one of ShareGPT: the paper names neither length nor "
                "model. SmolLM2 135M here. Five rounds in turns, one thread; the curves are medians."
            ),
            N_("Here both pools lie in the same memory. The paper's swap crosses PCIe, each block by itself."),
        ),
        measure=None,
        why=N_(
            "Without PCIe between the pools a swap is a copy in memory, and computing 499 tokens on a "
            "CPU takes many times as long."
        ),
        two_readings=N_(
            "By the text recomputing never costs more than 20 percent of what swapping costs. By its "
            "curves that is true only as: never more than 20 percent above it (0.26 to 1.17 times)."
        ),
    ),
    Record(
        key="fig19b",
        place=N_("Fig. 19b, section 7.3"),
        title=N_("Recompute against swap, end to end"),
        quantities=_figure_19b(),
        setup=(
            N_(
                "The paper plots latency at one rate, and does not name it. Here it is the rate of a full memory of "
                "OPT-13B's slots, with the traces of Fig. 12 and the step times of this machine."
            ),
            N_(
                "What a block costs to move is measured as in Fig. 19a; swap space is as large as the pool, the "
                "paper's bound. Here both pools lie in the same memory, without PCIe between them."
            ),
            N_("Judged: which of both is better with the smallest and the largest blocks."),
        ),
        measure=None,
        why=N_(
            "The paper's small blocks cross PCIe one by one. Here a swap is a copy in memory, and computing again on a "
            "CPU takes many times as long."
        ),
    ),
)
