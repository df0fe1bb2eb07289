"""Figs. 12 and 13: how many requests run at once, and the rate that follows, when the queue is never empty.

Both come from the same runs. A memory that is always full decides by itself how many run; how many requests a second
that is, a clock decides, and there are two. `measured`: the table of this machine. `equal`: every step takes as long as
one of a single sequence, as on a processor for which a larger batch costs nothing. A real accelerator lies between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from course.paper.capacity import num_slots
from course.paper.record import NO_NUMBER, Curve, Measured, Quantity, Record, Setup
from course.paper.serving import MEMORIES, PAPER_BLOCK_SIZE, memory_of, normalized_latency, saturate
from course.paper.step_times import StepTimes
from course.paper.workloads import FAMILIES, MIXES, TraceTask, draw_requests
from engine.i18n import N_

PRINTED_13 = {"ShareGPT": (7.00, 9.81, 13.62, 30.42), "Alpaca": (7.00, 43.24, 72.75, 132.44)}
"""Fig. 13's labels, by `MEMORIES`."""
CLOCKS = {
    "measured": N_("step times of this machine"),
    "equal": N_("every step takes equally long"),
}
RATES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Of the curves, over the rate at which Orca (Oracle) is saturated."""
HIGHEST_LATENCY = 1.0
"""Seconds a token: the upper end of the axis of Fig. 12."""


@dataclass(frozen=True, slots=True)
class Saturation(TraceTask):
    """One memory with an endless queue."""

    block_size: int = PAPER_BLOCK_SIZE


@dataclass(frozen=True, slots=True)
class Throughput:
    """mean_running: requests at once. rates: requests a second, by clock. prompt_tokens: computed for each request that
    finished, over the length of a mean prompt; what is computed again after a preemption counts.
    """

    mean_running: float
    rates: dict[str, float]
    prompt_tokens: float


def run_saturated(job: tuple[Saturation, StepTimes]) -> Throughput:
    """One run, timed by both clocks."""
    task, times = job
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    memory = memory_of(task.memory, task.num_slots, task.block_size)
    result = saturate(memory, requests, {"measured": times, "equal": times.alone}, task.num_slots)
    mean_prompt = sum(request.num_prompt_tokens for request in requests) / len(requests)
    return Throughput(result.mean_running, result.requests_per_second, result.prompt_tokens / mean_prompt)


def tasks_of(setup: Setup, mix: str, model: str) -> dict[str, list[Saturation]]:
    """Every memory under every trace of a mix, by memory."""
    slots = num_slots(model)
    return {
        memory: [
            Saturation(memory, mix, family, seed, slots, setup.num_requests(mix, slots))
            for family, seed in product(FAMILIES, setup.seeds)
        ]
        for memory in MEMORIES
    }


def results_of(setup: Setup, mix: str, model: str) -> dict[str, list[Throughput]]:
    """By memory, one a trace."""
    tasks = tasks_of(setup, mix, model)
    results = setup.results(run_saturated, [task for each in tasks.values() for task in each])
    return {memory: [results[task] for task in each] for memory, each in tasks.items()}


def measure_figure_13(setup: Setup, mix: str) -> Measured:
    """Mean number of requests at once, and the ratios."""
    running = {name: [r.mean_running for r in results] for name, results in results_of(setup, mix, "13B").items()}
    return Measured(running | {f"over_{name}": ratios(running["Paged"], running[name]) for name in MEMORIES[:-1]})


def measure_figure_12(setup: Setup, mix: str, model: str) -> Measured:
    """Rates over those of the other memories in the same trace; for OPT-13B also the curves of one trace."""
    results = results_of(setup, mix, model)
    values = {}
    for clock, name in product(CLOCKS, MEMORIES[:-1]):
        paged, other = ([r.rates[clock] for r in results[memory]] for memory in ("Paged", name))
        values[f"{clock}_{name}"] = ratios(paged, other)
    values["prompt_tokens"] = [r.prompt_tokens for r in results["Paged"]]
    curves = [latency_curve(setup, mix, model)] if model == "13B" else []
    return Measured(values, curves)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One memory at rising rates (requests a second)."""

    task: Saturation
    times: StepTimes
    rates: tuple[float, ...]


def run_sweep(sweep: Sweep) -> list[float | None]:
    """Normalized latency at each rate, s/token; None from the first one behind the end of the paper's axis on."""
    task = sweep.task
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    latencies: list[float | None] = []
    for rate in sweep.rates:
        memory = memory_of(task.memory, task.num_slots, task.block_size)
        latencies.append(normalized_latency(memory, requests, rate, sweep.times, warm_up=task.num_slots))
        if (latencies[-1] or 0.0) > HIGHEST_LATENCY:
            break
    return latencies + [None] * (len(sweep.rates) - len(latencies))


def latency_curve(setup: Setup, mix: str, model: str) -> Curve:
    """Fig. 12's curve for half of the first trace, with the step times of this machine."""
    first = [tasks[0] for tasks in tasks_of(setup, mix, model).values()]
    [oracle] = setup.results(run_saturated, [task for task in first if task.memory == "Oracle"]).values()
    rates = tuple(oracle.rates["measured"] * share for share in RATES)
    sweeps = [Sweep(replace(task, num_requests=task.num_requests // 2), setup.times, rates) for task in first]
    columns = dict(zip(MEMORIES, setup.run(run_sweep, sweeps), strict=True))
    over = N_("rate over Oracle's")
    rows = [{over: share} | {name: column[i] for name, column in columns.items()} for i, share in enumerate(RATES)]
    return Curve(CLOCKS["measured"], over, N_("s/token"), rows)


def ratios(ours: Iterable[float], others: Iterable[float]) -> list[float]:
    """One over the other, trace by trace."""
    return [one / other for one, other in zip(ours, others, strict=True)]


OVER = {
    "measured": N_("times its rate in pages, step times of this machine"),
    "equal": N_("times its rate in pages, every step equally long"),
}


def _rate_quantities(printed: Mapping[str, tuple[str, float | None]]) -> tuple[Quantity, ...]:
    """`printed`: by memory what the paper says, and the bound in it."""
    quantities = []
    for clock, (name, (says, low)) in product(CLOCKS, printed.items()):
        sure, neutral = ("", None) if low is None else ("T", 1.0)
        quantities.append(Quantity(f"{clock}_{name}", OVER[clock], says, sure, low, None, neutral, of=LABELS[name]))
    again = N_("prompt tokens computed for each request, those after a preemption too, over its prompt's")
    return (*quantities, Quantity("prompt_tokens", again, NO_NUMBER, "", of=LABELS["Paged"]))


def _figure_12(letter: str, mix: str, model: str, printed: Mapping[str, tuple[str, float | None]], why: str) -> Record:
    return Record(
        key=f"fig12{letter}",
        place=N_("Fig. 12, section 6.2"),
        title=N_("Request rate"),
        of=f"12{letter}: OPT-{model}, {mix}",
        quantities=_rate_quantities(printed),
        setup=(*SETUP, *TIMES) if mix == "ShareGPT" else (*SETUP, *TIMES, ON_ALPACA),
        measure=partial(measure_figure_12, mix=mix, model=model),
        why=why,
    )


SETUP = (
    N_(
        "Lengths come from gamma and log-normal distributions with the published means and a standard deviation equal "
        "to the mean, which the paper does not print. Three seeds of each; a claim holds if all six traces agree."
    ),
    N_(
        "The queue is never empty, so memory alone decides; the paper's memory is nearly full at the rates it names. "
        "The requests of a trace would fill the memory eight times; steps count once those that have finished would "
        "fill it once."
    ),
)
TIMES = (
    N_(
        "The rate is that of a full memory: above it the queue grows without end. The curves are of half a trace, "
        "which is shorter than the paper's hour, so they bend later."
    ),
    N_(
        "Two clocks: the steps of this machine, whose cost grows with the batch, and steps that all take equally long. "
        "An accelerator of the paper lies between. FasterTransformer (up to 22 times) is not run."
    ),
)
ON_ALPACA = N_(
    "On Alpaca the text gives no ratio but a similar trend, and for OPT-13B 1.3 times Oracle in "
    "section 6.3. Judged otherwise: more than once. Of OPT-175B it says that the gain over "
    "Oracle and Pow2 is small, as computing limits it."
)
COMPUTE_BOUND = N_(
    "On this machine computing decides, not memory: a batch takes many times as long as one sequence, so more requests "
    "at once bring few more a second, and what a full memory of pages preempts is computed again. With steps that cost "
    "the same, memory decides alone."
)
FIGURE_12_TEXT = {"Oracle": ("1.7 – 2.7", 1.7), "Pow2": (NO_NUMBER, None), "Max": ("2.7 – 8", 2.7)}
"""Of (a) to (c) together; the text gives no ratio of a single model."""
SIMILAR: dict[str, tuple[str, float | None]] = dict.fromkeys(MEMORIES[:-1], ("> 1", 1.0))
"""On Alpaca: a similar trend, no number. Of (f) the text says that the gain over Oracle and Pow2 is less."""


def _figure_13(letter: str, mix: str, over: Mapping[str, tuple[str, str, float]]) -> Record:
    means = []
    for memory, printed in zip(MEMORIES, PRINTED_13[mix], strict=True):
        bound = printed if memory == "Max" else None
        name = N_("mean number of requests at once")
        means.append(Quantity(memory, name, f"{printed:.2f}", "L", bound, bound, of=LABELS[memory]))
    times = tuple(
        Quantity(f"over_{name}", N_("times as many in pages"), says, sure, low, None, 1.0, of=LABELS[name])
        for name, (says, sure, low) in over.items()
    )
    return Record(
        key=f"fig13{letter}",
        place=N_("Fig. 13, section 6.2"),
        title=N_("Requests at once"),
        of=f"13{letter}: OPT-13B, {mix}",
        quantities=(*means, *times),
        setup=SETUP if mix == "ShareGPT" else (*SETUP, NOT_FULL),
        measure=partial(measure_figure_13, mix=mix),
        why=WHY_13[mix],
    )


LABELS = {"Max": "Orca (Max)", "Pow2": "Orca (Pow2)", "Oracle": "Orca (Oracle)", "Paged": "vLLM"}
NOT_FULL = N_(
    "The paper's 30 requests a second need not fill its pages; here they are full, so they hold more requests."
)
WHY_13 = {
    "ShareGPT": N_(
        "How many requests pages hold depends on the lengths, and ours have the published means, not ShareGPT's own "
        "shape: some traces hold a few fewer than the paper's 30.42, others more."
    ),
    "Alpaca": "",
}
RECORDS = (
    _figure_12("a", "ShareGPT", "13B", FIGURE_12_TEXT, COMPUTE_BOUND),
    _figure_12("b", "ShareGPT", "66B", FIGURE_12_TEXT, COMPUTE_BOUND),
    _figure_12("c", "ShareGPT", "175B", FIGURE_12_TEXT, COMPUTE_BOUND),
    _figure_12("d", "Alpaca", "13B", SIMILAR | {"Oracle": ("1.3", 1.3)}, COMPUTE_BOUND),
    _figure_12("e", "Alpaca", "66B", SIMILAR, COMPUTE_BOUND),
    _figure_12("f", "Alpaca", "175B", SIMILAR, COMPUTE_BOUND),
    _figure_13("a", "ShareGPT", {"Max": ("4.3", "T", 4.3), "Pow2": ("3.10", "D", 3.1), "Oracle": ("2.2", "T", 2.2)}),
    _figure_13("b", "Alpaca", {"Max": ("18.9", "D", 18.9), "Pow2": ("3.06", "D", 3.06), "Oracle": ("1.82", "D", 1.82)}),
)
