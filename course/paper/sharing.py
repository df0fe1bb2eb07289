"""Figs. 14 and 15: samples and beams of one prompt share blocks, which saves memory and lets more requests run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

from course.paper.batched import CLOCKS, COMPUTE_BOUND, ratios
from course.paper.capacity import num_slots
from course.paper.record import Measured, Quantity, Record, Setup
from course.paper.step_times import StepTimes
from course.paper.workloads import FAMILIES, MIXES, Request, draw_requests
from engine.i18n import N_

WIDTHS = (2, 4, 6)
"""Samples or beams of a request (section 6.3)."""
PRINTED_SAVED = {"parallel": (6.09, 8.53, 9.79), "beam": (37.56, 53.13, 55.16)}
"""Fig. 15's bars on Alpaca, percent, by `WIDTHS`."""
RANGES = {
    ("parallel", "Alpaca"): (6.1, 9.8),
    ("parallel", "ShareGPT"): (16.2, 30.5),
    ("beam", "Alpaca"): (37.6, 55.2),
    ("beam", "ShareGPT"): (44.3, 66.3),
}
"""The text's ranges over all widths, percent (section 6.3)."""
BEAM_REQUESTS = {"Alpaca": 8, "ShareGPT": 2}


@dataclass(frozen=True, slots=True)
class SharingTask:
    """A trace whose requests each have `width` samples."""

    mix: str
    family: str
    seed: int
    width: int
    num_requests: int


def tasks_of(setup: Setup, mix: str, parts: int) -> list[SharingTask]:
    """A trace for each width, family and seed, with a `parts`-th of the requests that a full run has."""
    num_requests = setup.num_requests(mix, num_slots("13B")) // parts
    return [
        SharingTask(mix, family, seed, width, max(1, num_requests // width))
        for width, family, seed in product(WIDTHS, FAMILIES, setup.seeds)
    ]


def saved_by_samples(task: SharingTask) -> float:
    """Percent of the blocks that sharing saves, over those without: all steps together."""
    from course.paper.engine_memory import EngineMemory

    memory = EngineMemory(num_slots("13B"), n=task.width)
    for request in draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed):
        memory.add(request)
    return memory.percent_saved_to_the_end()


def measure_parallel(setup: Setup, mix: str) -> Measured:
    """The savings of parallel sampling, by width."""
    tasks = tasks_of(setup, mix, 4)
    values: dict[str, list[float]] = {}
    for task, saved in zip(tasks, setup.run(saved_by_samples, tasks), strict=True):
        values.setdefault(str(task.width), []).append(saved)
    return Measured(values)


def saved_by_beams(job: tuple[SharingTask, str]) -> float:
    """The same of beam search with a real model, whose text decides which beams go on."""
    from course.paper.engine_memory import BeamSearches

    task, model = job
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    return BeamSearches(model, task.width, requests).percent_saved_to_the_end()


def measure_beams(setup: Setup, mix: str) -> Measured:
    """The savings of beam search, by width; one trace."""
    tasks = [SharingTask(mix, FAMILIES[0], setup.seeds[0], width, BEAM_REQUESTS[mix]) for width in WIDTHS]
    saved = setup.run(saved_by_beams, [(task, setup.times.model) for task in tasks])
    return Measured({str(task.width): [percent] for task, percent in zip(tasks, saved, strict=True)})


def paged_rates(job: tuple[SharingTask, StepTimes]) -> dict[str, float]:
    """Requests a second of a full paged memory, by clock."""
    from course.paper.engine_memory import EngineMemory
    from course.paper.serving import saturate

    task, times = job
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    memory = EngineMemory(num_slots("13B"), n=task.width)
    return saturate(memory, requests, {"measured": times, "equal": times.alone}).requests_per_second


def oracle_rates(job: tuple[SharingTask, StepTimes]) -> dict[str, float]:
    """The same of Orca (Oracle), where each sample has a region of its own."""
    from course.paper.serving import memory_of, saturate

    task, times = job
    samples = [
        Request(request.number * task.width + i, 0.0, request.num_prompt_tokens, request.num_output_tokens)
        for request in draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
        for i in range(task.width)
    ]
    memory = memory_of("Oracle", num_slots("13B"))
    rates = saturate(memory, samples, {"measured": times, "equal": times.alone}).requests_per_second
    return {clock: rate / task.width for clock, rate in rates.items()}


def measure_figure_14(setup: Setup) -> Measured:
    """Paged over Oracle by width, on Alpaca, one seed of each family."""
    num_requests = setup.num_requests("Alpaca", num_slots("13B"))
    jobs = [
        (SharingTask("Alpaca", family, setup.seeds[0], width, num_requests), setup.times)
        for width, family in product(WIDTHS, FAMILIES)
    ]
    paged, oracle = setup.run(paged_rates, jobs), setup.run(oracle_rates, jobs)
    values: dict[str, list[float]] = {}
    for (task, _times), ours, others in zip(jobs, paged, oracle, strict=True):
        for clock in CLOCKS:
            values.setdefault(f"{clock}_{task.width}", []).extend(ratios([ours[clock]], [others[clock]]))
    return Measured(values)


SAVED = {
    "parallel": N_("blocks saved by sharing, percent, samples"),
    "beam": N_("blocks saved by sharing, percent, beams"),
}


def _saved_record(kind: str, mix: str, setup: tuple[str, ...], why: str) -> Record:
    low, high = RANGES[kind, mix]
    is_figure = mix == "Alpaca"
    letter = "a" if kind == "parallel" else "b"
    quantities = tuple(
        Quantity(
            str(width),
            SAVED[kind],
            f"{PRINTED_SAVED[kind][i]:g}" if is_figure else f"{low:g} – {high:g}",
            "L" if is_figure else "T",
            low,
            high,
            0.0,
            digits=1,
            of=str(width),
        )
        for i, width in enumerate(WIDTHS)
    )
    measure = partial(measure_parallel if kind == "parallel" else measure_beams, mix=mix)
    return Record(
        key=f"fig15{letter}" if is_figure else f"sharegpt15{letter}",
        place=N_("Fig. 15, section 6.3") if is_figure else N_("section 6.3, text only"),
        title=N_("Saved by sampling") if kind == "parallel" else N_("Saved by beam search"),
        of=f"{f'15{letter}: ' if is_figure else ''}OPT-13B, {mix}",
        quantities=quantities,
        setup=setup,
        measure=measure,
        why=why,
    )


SAMPLES = (
    N_(
        "The engine forks a request's samples at the first token, as in the paper; all samples of a "
        "request are equally long. Judged: the text's range over all widths."
    ),
    N_(
        "Lengths as in Fig. 12. How much is shared depends on how many prompts are longer than a "
        "block, and so on the spread of lengths, which the paper does not print."
    ),
)
BEAMS = (
    N_(
        "A real model searches here, SmolLM2 135M instead of OPT-13B, over pieces of one English "
        "text: which beams go on depends on what the model finds likely. A few requests of one "
        "trace, no end of text."
    ),
)
RECORDS = (
    Record(
        key="fig14",
        place=N_("Fig. 14, section 6.3"),
        title=N_("Request rate, several samples"),
        of="14: OPT-13B, Alpaca",
        quantities=tuple(
            Quantity(f"{clock}_{width}", words, "> 1.3", "T", 1.3, None, 1.0, of=str(width))
            for clock, words in (
                ("measured", N_("samples: rate over Orca (Oracle)'s, step times of this machine")),
                ("equal", N_("samples: rate over Orca (Oracle)'s, every step equally long")),
            )
            for width in WIDTHS
        ),
        setup=(
            N_(
                "The text gives 1.3 times without sharing (basic sampling), and 2.3 times for beams of width "
                "6, nothing for the other panels. Judged: more than 1.3 times at each width."
            ),
            N_(
                "Beams are not run at scale: what they share depends on a model's text, and this simulation "
                "has none. Fig. 15 measures it with a real model."
            ),
            N_("Orca (Oracle) reserves a region for each sample."),
        ),
        measure=measure_figure_14,
        why=COMPUTE_BOUND,
    ),
    _saved_record(
        "parallel",
        "Alpaca",
        SAMPLES,
        N_(
            "The saving grows with the number of samples here, too. Its size follows from how many "
            "prompts fill a block, and our two families of lengths differ from Alpaca's own in that."
        ),
    ),
    _saved_record(
        "beam",
        "Alpaca",
        BEAMS,
        N_(
            "How soon beams part depends on the model and the text. A small model's beams meet later or "
            "earlier than OPT-13B's."
        ),
    ),
    _saved_record(
        "parallel",
        "ShareGPT",
        SAMPLES,
        N_(
            "The saving grows with the number of samples here, too. Its size is the prompts' share of "
            "the memory, which follows from the lengths."
        ),
    ),
    _saved_record(
        "beam",
        "ShareGPT",
        BEAMS,
        N_(
            "How soon beams part depends on the model and the text. A small model's beams meet later or "
            "earlier than OPT-13B's."
        ),
    ),
)
