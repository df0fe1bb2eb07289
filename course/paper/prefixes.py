"""Figs. 16 and 17: a prefix that all prompts share, and chats whose prompts repeat what was said before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from random import Random

from course.paper.batched import CLOCKS, COMPUTE_BOUND, LABELS, OVER, ratios
from course.paper.capacity import num_slots
from course.paper.record import NO_NUMBER, Measured, Quantity, Record, Setup
from course.paper.serving import MEMORIES, NEXT_TOKEN, Memory, PagedMemory, StepTime, memory_of, own_token, saturate
from course.paper.step_times import StepTimes
from course.paper.workloads import FAMILIES, Request, draw_length, draw_requests
from engine.baselines.arrivals import ALPACA, SHAREGPT
from engine.i18n import N_

PREFIXES = {80: 1.67, 341: 3.58}
"""Tokens of the prefix (one example, five examples) -> times Orca (Oracle)'s throughput (Fig. 16)."""
PREFIX_TOKEN = 1
LONGEST_PROMPT = LONGEST_OUTPUT = 1024
"""Of a chat (section 6.5)."""
PAGED, CACHED = "Paged", "Paged, prefix cache"


@dataclass(frozen=True, slots=True)
class PrefixTask:
    """A trace of which every prompt begins with the same tokens."""

    family: str
    seed: int
    prefix: int
    num_requests: int


def prefix_rates(job: tuple[PrefixTask, StepTimes]) -> dict[str, dict[str, float]]:
    """Requests a second by memory and clock: Oracle, and pages that keep the prefix once."""
    task, times = job
    requests = [
        replace(
            request,
            num_prompt_tokens=task.prefix + request.num_prompt_tokens,
            prompt=(PREFIX_TOKEN,) * task.prefix + (own_token(request.number),) * request.num_prompt_tokens,
        )
        for request in draw_requests(ALPACA, task.family, task.num_requests, task.seed)
    ]
    slots = num_slots("13B")
    clocks: dict[str, StepTime] = {"measured": times, "equal": times.alone}
    memories: dict[str, Memory] = {
        "Oracle": memory_of("Oracle", slots),
        PAGED: PagedMemory(slots, prefix_caching=True),
    }

    def size(request: Request) -> int:
        return request.num_tokens - task.prefix

    return {
        name: saturate(memory, requests, clocks, slots, size=size).requests_per_second
        for name, memory in memories.items()
    }


def measure_figure_16(setup: Setup) -> Measured:
    """Paged over Oracle, by prefix and clock."""
    num_requests = setup.num_requests("Alpaca", num_slots("13B"))
    tasks = [
        PrefixTask(family, seed, prefix, num_requests)
        for prefix, family, seed in product(PREFIXES, FAMILIES, setup.seeds)
    ]
    values: dict[str, list[float]] = {}
    for task, rates in setup.results(prefix_rates, tasks).items():
        for clock in CLOCKS:
            values.setdefault(f"{clock}_{task.prefix}", []).append(rates[PAGED][clock] / rates["Oracle"][clock])
    return Measured(values)


@dataclass(frozen=True, slots=True)
class ChatTask:
    """Conversations in one memory."""

    memory: str
    family: str
    seed: int
    num_conversations: int


def draw_conversation(random: Random, family: str, number: int, first: int) -> list[Request]:
    """The rounds of one conversation, until a prompt is as long as prompts may be. Requests count from `first`.

    A prompt is everything said before and the user's next words, cut to its last `LONGEST_PROMPT` tokens.
    """
    said: list[int] = []
    rounds: list[Request] = []
    while len(said) < LONGEST_PROMPT:
        said += [own_token(number)] * draw_length(random, family, SHAREGPT.mean_input)
        prompt = tuple(said[-LONGEST_PROMPT:])
        output = min(draw_length(random, family, SHAREGPT.mean_output), LONGEST_OUTPUT)
        rounds.append(Request(first + len(rounds), 0.0, len(prompt), output, prompt))
        said += [NEXT_TOKEN] * output
    return rounds


def chat_rates(job: tuple[ChatTask, StepTimes]) -> tuple[dict[str, float], float]:
    """Rounds a second by clock, and prompt tokens computed a round. A round is queued once the one before has ended."""
    task, times = job
    random, first_rounds, rounds = Random(task.seed), list[Request](), list[Request]()
    for number in range(task.num_conversations):
        conversation = draw_conversation(random, task.family, number, len(rounds))
        first_rounds.append(conversation[0])
        rounds += conversation
    firsts = {request.number for request in first_rounds}

    def follow(number: int) -> Request | None:
        is_last = number + 1 == len(rounds) or number + 1 in firsts
        return None if is_last else rounds[number + 1]

    slots = num_slots("13B")
    memory = PagedMemory(slots, prefix_caching=True) if task.memory == CACHED else memory_of(task.memory, slots)
    result = saturate(memory, first_rounds, {"measured": times, "equal": times.alone}, slots, follow=follow)
    return result.requests_per_second, result.prompt_tokens


def measure_figure_17(setup: Setup) -> Measured:
    """Pages over each Orca; and pages with a prefix cache over pages without."""
    names = (*MEMORIES, CACHED)
    count = setup.num_requests("ShareGPT", num_slots("13B"))
    tasks = [ChatTask(name, family, seed, count) for name, family, seed in product(names, FAMILIES, setup.seeds)]
    results = setup.results(chat_rates, tasks)
    of = {name: [result for task, result in results.items() if task.memory == name] for name in names}
    values: dict[str, list[float]] = {}
    for clock in CLOCKS:
        paged = [rates[clock] for rates, _tokens in of[PAGED]]
        for name in MEMORIES[:-1]:
            over = ratios(paged, [rates[clock] for rates, _tokens in of[name]])
            values |= {f"{clock}_{name}": over, f"curve_{clock}_{name}": over}
        values[f"{clock}_cached"] = ratios([rates[clock] for rates, _tokens in of[CACHED]], paged)
    values["computed"] = [
        100 * ratio for ratio in ratios([tokens for _, tokens in of[CACHED]], [tokens for _, tokens in of[PAGED]])
    ]
    return Measured(values)


DRAWN = {"Oracle": "1.43 – 1.52", "Max": "1.50 – 1.66"}
"""Fig. 17's curves at four latencies, over this memory."""
WITH_CACHE = {
    "measured": N_("rate with a prefix cache over that without, step times of this machine"),
    "equal": N_("rate with a prefix cache over that without, every step equally long"),
}


def _figure_17() -> tuple[Quantity, ...]:
    quantities = []
    for clock in CLOCKS:
        for name in MEMORIES[:-1]:
            quantities.append(Quantity(f"{clock}_{name}", OVER[clock], "2", "T", 2.0, None, 1.0, of=LABELS[name]))
            if name in DRAWN:
                low = float(DRAWN[name].split()[0])
                key = f"curve_{clock}_{name}"
                quantities.append(Quantity(key, OVER[clock], DRAWN[name], "V", low, None, 1.0, of=LABELS[name]))
        quantities.append(Quantity(f"{clock}_cached", WITH_CACHE[clock], NO_NUMBER, "", of=PAGED))
    quantities.append(
        Quantity(
            "computed",
            N_("prompt tokens computed with a prefix cache, percent of those without"),
            NO_NUMBER,
            "",
            digits=0,
            of=PAGED,
        )
    )
    return tuple(quantities)


RECORDS = (
    Record(
        key="fig16",
        place=N_("Fig. 16, section 6.4"),
        title=N_("Shared prefix"),
        of="16: LLaMA-13B, WMT16",
        quantities=tuple(
            Quantity(
                f"{clock}_{prefix}",
                OVER[clock],
                f"{times:g}",
                "T",
                times,
                None,
                1.0,
                of=f"{LABELS['Oracle']}, {prefix}",
            )
            for clock in CLOCKS
            for prefix, times in PREFIXES.items()
        ),
        setup=(
            N_(
                "Prefixes of 80 and 341 tokens, found again by the engine's prefix cache; the paper's "
                "provider stores them in advance."
            ),
            N_(
                "The paper does not print the lengths of its translation data. Behind the prefix, prompts "
                "and outputs are like Alpaca's here. LLaMA-13B has as many bytes a token as OPT-13B, so as "
                "many slots."
            ),
            N_(
                "The queue is never empty. What a trace's requests have behind the prefix would fill the memory eight "
                "times; steps count once what has finished would fill it once. Three seeds of each family of lengths."
            ),
        ),
        measure=measure_figure_16,
        why=COMPUTE_BOUND,
    ),
    Record(
        key="fig17",
        place=N_("Fig. 17, section 6.5"),
        title=N_("Chat"),
        of="17: OPT-13B, ShareGPT",
        quantities=_figure_17(),
        setup=(
            N_(
                "A conversation goes on until its prompt fills 1024 tokens; each part is as long as in "
                "ShareGPT on average. The paper takes real conversations and does not print their number of "
                "rounds."
            ),
            N_(
                "Prompts are cut to their last 1024 tokens, outputs end at 1024, nothing is kept between "
                "rounds: as in the paper. The same with our prefix cache stands below it."
            ),
            N_(
                "The queue is never empty. The first rounds of a trace's conversations would fill the memory eight "
                "times; steps count once what has finished would fill it once. Three seeds of each family of lengths."
            ),
        ),
        measure=measure_figure_17,
        why=COMPUTE_BOUND,
        two_readings=N_(
            "The text says 2 times all three Orcas. The curves of the figure give 1.4 to 1.7 times, at "
            "latencies from 0.1 to 0.9 s a token."
        ),
    ),
)
