"""Figs. 14 and 15: samples and beams of one prompt share blocks, which saves memory and lets more requests run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

from course.paper.batched import CLOCKS, COMPUTE_BOUND
from course.paper.capacity import num_slots
from course.paper.record import Measured, Quantity, Record, Setup
from course.paper.serving import PagedMemory, memory_of, saturate
from course.paper.step_times import StepTimes
from course.paper.workloads import FAMILIES, MIXES, Request, draw_requests
from engine.i18n import N_
from engine.kv_cache.manager import KVCacheManager

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
BEAM_REQUESTS = {"Alpaca": 2, "ShareGPT": 1}
"""Beam searches of each trace, at once."""


@dataclass(frozen=True, slots=True)
class SharingTask:
    """A trace whose requests each have `width` samples or beams."""

    mix: str
    family: str
    seed: int
    width: int
    num_requests: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """A full paged memory. rates: requests a second, by clock. saved: percent of the blocks that sharing saves."""

    rates: dict[str, float]
    saved: float


class SavedBlocks:
    """Counts, step by step, the blocks of all tables and those that are really held."""

    def __init__(self, kv: KVCacheManager) -> None:
        self._kv = kv
        self._in_tables = self._held = 0

    def look(self) -> None:
        """Count this step."""
        self._in_tables += sum(map(len, self._kv.block_tables.values()))
        self._held += self._kv.pool.num_blocks - self._kv.pool.num_free_blocks

    @property
    def percent(self) -> float:
        """Blocks saved by sharing, over those without it: all steps together."""
        return 100 * (self._in_tables - self._held) / self._in_tables


def run_samples(job: tuple[SharingTask, StepTimes]) -> Sampled:
    """Pages with an endless queue of requests that each have several samples."""
    task, times = job
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    slots = num_slots("13B")
    memory = PagedMemory(slots, n=task.width)
    saved = SavedBlocks(memory.kv)

    def size(request: Request) -> int:
        return request.num_prompt_tokens + task.width * request.num_output_tokens

    result = saturate(memory, requests, {"measured": times, "equal": times.alone}, slots, size=size, note=saved.look)
    return Sampled(result.requests_per_second, saved.percent)


def sampled(setup: Setup, mix: str) -> dict[SharingTask, Sampled]:
    """Every width under every trace of a mix. Figs. 14 and 15 are of the same runs."""
    num_requests = setup.num_requests(mix, num_slots("13B"))
    tasks = [
        SharingTask(mix, family, seed, width, num_requests)
        for width, family, seed in product(WIDTHS, FAMILIES, setup.seeds)
    ]
    return setup.results(run_samples, tasks)


def measure_parallel(setup: Setup, mix: str) -> Measured:
    """The savings of parallel sampling, by width."""
    values: dict[str, list[float]] = {}
    for task, result in sampled(setup, mix).items():
        values.setdefault(str(task.width), []).append(result.saved)
    return Measured(values)


def saved_by_beams(job: tuple[SharingTask, StepTimes]) -> float:
    """The same of beam search with a real model, whose text decides which beams go on."""
    from course.paper.beams import BeamSearches

    task, times = job
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    searches = BeamSearches(times.model, task.width, requests)
    saved = SavedBlocks(searches.engine.kv)
    for _step in searches.steps():
        saved.look()
    return saved.percent


def measure_beams(setup: Setup, mix: str) -> Measured:
    """The savings of beam search, by width."""
    tasks = [
        SharingTask(mix, family, seed, width, BEAM_REQUESTS[mix])
        for width, family, seed in product(reversed(WIDTHS), FAMILIES, setup.seeds)
    ]
    values: dict[str, list[float]] = {str(width): [] for width in WIDTHS}
    for task, percent in setup.results(saved_by_beams, tasks).items():
        values[str(task.width)].append(percent)
    return Measured(values)


def oracle_rates(job: tuple[SharingTask, StepTimes]) -> dict[str, float]:
    """Requests a second by clock of Orca (Oracle), where each sample has a region of its own."""
    task, times = job
    samples = [
        Request(request.number * task.width + i, 0.0, request.num_prompt_tokens, request.num_output_tokens)
        for request in draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
        for i in range(task.width)
    ]
    slots = num_slots("13B")
    memory = memory_of("Oracle", slots)
    rates = saturate(memory, samples, {"measured": times, "equal": times.alone}, slots).requests_per_second
    return {clock: rate / task.width for clock, rate in rates.items()}


def measure_figure_14(setup: Setup) -> Measured:
    """Paged over Oracle by width, on Alpaca."""
    paged = sampled(setup, "Alpaca")
    oracle = setup.results(oracle_rates, list(paged))
    values: dict[str, list[float]] = {}
    for task, ours in paged.items():
        for clock in CLOCKS:
            values.setdefault(f"{clock}_{task.width}", []).append(ours.rates[clock] / oracle[task][clock])
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
        "Lengths, queue and traces as in Fig. 12. How much is shared depends on how many prompts are longer than a "
        "block, and so on the spread of lengths, which the paper does not print."
    ),
)
BEAMS = (
    N_(
        "A real model searches here, SmolLM2 135M instead of OPT-13B, over pieces of one English "
        "text: which beams go on depends on what the model finds likely. No beam ends before its length."
    ),
    N_(
        "The first requests of six traces (three seeds of two families of lengths), all at once: two with lengths "
        "like Alpaca, one like ShareGPT. Judged: the text's range over all widths."
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
