"""Figs. 18 and 19: what the size of a block costs, in attention, in serving, and when a request makes room."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from course.paper.batched import Saturation, saturated
from course.paper.capacity import num_slots
from course.paper.record import NO_NUMBER, Curve, Measured, Quantity, Record, Setup
from course.paper.serving import PAPER_BLOCK_SIZE
from course.paper.workloads import FAMILIES, MIXES
from engine.baselines.arrivals import SHAREGPT
from engine.i18n import N_

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
    """Median seconds of attention in one layer: our kernel over blocks of 16 and over one block a sequence, and
    PyTorch's over contiguous tensors.
    """

    paged: float
    one_block: float
    contiguous: float


def judge_figure_18a(times: Mapping[tuple[int, int], AttentionTimes]) -> Measured:
    """By (batch, context): how much slower the paged kernel is, in percent, and a curve of each batch."""
    values: dict[str, list[float]] = {}
    rows: dict[int, list[dict[str, float | None]]] = {}
    for (batch, context), each in times.items():
        for key, others in (("one", each.one_block), ("torch", each.contiguous)):
            values[f"{key}_{batch}_{context}"] = [100 * (each.paged / others - 1)]
        rows.setdefault(batch, []).append(
            {
                N_("context"): context,
                N_("paged, blocks of 16"): 1e6 * each.paged,
                N_("our kernel, one block a sequence"): 1e6 * each.one_block,
                N_("PyTorch, contiguous"): 1e6 * each.contiguous,
            }
        )
    name = N_("attention of one layer")
    return Measured(values, [Curve(name, "context", N_("µs"), lines, str(batch)) for batch, lines in rows.items()])


def measure_figure_18b(setup: Setup, cost: Mapping[int, float]) -> Measured:
    """Rates of a full memory by block size, one trace a mix, over the rate with blocks of 16.

    With one block size every step takes equally long: `cost`, over that of a step with blocks of 16.
    """
    values: dict[str, list[float]] = {}
    rows: list[dict[str, float | None]] = [{N_("block size"): size} for size in BLOCK_SIZES]
    for mix in MIXES:
        slots = num_slots("13B")
        count = setup.num_requests(mix, slots) // 2
        tasks = [Saturation("Paged", mix, FAMILIES[0], setup.seeds[0], slots, count, size) for size in BLOCK_SIZES]
        results = dict(zip(BLOCK_SIZES, saturated(setup, tasks), strict=True))
        rates = {size: result.rates["equal"] / cost[size] for size, result in results.items()}
        reference = rates[PAPER_BLOCK_SIZE]
        values[f"{mix}_best"] = [float(max(rates, key=lambda size: rates[size]))]
        values[f"{mix}_256"] = [rates[BLOCK_SIZES[-1]] / reference]
        for row, size in zip(rows, BLOCK_SIZES, strict=True):
            row[mix] = rates[size] / reference
    for row, size in zip(rows, BLOCK_SIZES, strict=True):
        row[N_("time of a step")] = cost[size]
    return Measured(values, [Curve(N_("over blocks of 16"), N_("block size"), N_("times"), rows)])


@dataclass(frozen=True, slots=True)
class PreemptionTimes:
    """Seconds to make room for a request of `REQUEST_TOKENS` and bring it back, in each round."""

    recompute: list[float]
    swap_in: list[float]
    swap_out: list[float]


def judge_figure_19a(times: Mapping[int, PreemptionTimes]) -> Measured:
    """By block size: recomputing one request's keys and values against moving its blocks out and back."""
    rows: list[dict[str, float | None]] = []
    recomputes, swaps = [], []
    for size, each in times.items():
        recompute, swap_in, swap_out = (
            1e3 * statistics.median(seconds) for seconds in (each.recompute, each.swap_in, each.swap_out)
        )
        recomputes.append(recompute)
        swaps.append(swap_in + swap_out)
        rows.append(
            {
                N_("block size"): size,
                N_("recompute"): recompute,
                N_("swap in"): swap_in,
                N_("swap out"): swap_out,
                N_("swap in and out"): swaps[-1],
            }
        )
    values = {
        "constant": [max(recomputes) / min(recomputes)],
        "small": [swaps[0] / swaps[-1]],
        "most": [max(one / other for one, other in zip(recomputes, swaps, strict=True))],
        "smallest": [recomputes[0] / swaps[0]],
    }
    return Measured(values, [Curve(N_("one request"), N_("block size"), N_("ms"), rows)])


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
                "sequence; PyTorch's attention is shown, too. Medians of five rounds in turns, one thread."
            ),
            N_("Judged: the text's 20 to 26 percent at batch 32."),
        ),
        measure=None,
        why=N_(
            "Against another kernel over contiguous memory, as in the paper, the difference is about as large as "
            "there. Against the same kernel over one block a sequence it is a few percent: most of it lies between "
            "two kernels, and not in the block table."
        ),
        two_readings=N_(
            "The text says 20 to 26 percent for both batches. In the figure only batch 32 is there (19 "
            "to 26 percent); at batch 8 it is 25 to 44 percent."
        ),
        is_timed=True,
    ),
    Record(
        key="fig18b",
        place=N_("Fig. 18b, section 7.2"),
        title=N_("The best block size"),
        quantities=(
            Quantity("ShareGPT_best", N_("best block size"), "16 – 128", "T", 16, 128, digits=0, of="ShareGPT"),
            Quantity("ShareGPT_256", N_("rate with blocks of 256, over blocks of 16"), NO_NUMBER, "", of="ShareGPT"),
            Quantity("Alpaca_best", N_("best block size"), "16 – 32", "T", 16, 32, digits=0, of="Alpaca"),
            Quantity("Alpaca_256", N_("rate with blocks of 256, over blocks of 16"), NO_NUMBER, "", of="Alpaca"),
        ),
        setup=(
            N_(
                "The paper plots latency at one rate, near saturation, and names neither rate nor model. "
                "Here it is the rate of a full memory of OPT-13B's slots."
            ),
            N_(
                "Small blocks cost time in the kernel, large ones memory. The time of a step by block size "
                "is measured (32 sequences of 512 tokens), the memory is simulated. One trace a mix."
            ),
        ),
        measure=None,
        why=N_("On a CPU small blocks cost the kernel less than on the paper's GPU, where a warp reads one block."),
        is_timed=True,
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
                "model. SmolLM2 135M here. Medians of five rounds in turns, one thread."
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
        is_timed=True,
    ),
    Record(
        key="fig19b",
        place=N_("Fig. 19b, section 7.3"),
        title=N_("Recompute against swap, end to end"),
        quantities=(
            Quantity("comparable", N_("block sizes at which both are alike"), "16 – 64", "T", 16, 64, digits=0),
        ),
        setup=(N_("Needs a card behind PCIe: on a CPU both pools are one memory, and the question does not arise."),),
        measure=None,
    ),
)
