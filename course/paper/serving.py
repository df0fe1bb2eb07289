"""Memories that serve requests of given lengths: the engine's scheduler over pages, the contiguous one over an arena.

No model runs, for lengths decide everything about memory. Limits but memory there are none: every running sequence gets
its token in every step, and prompts run whole, as in the paper. The log of each step is counted and dropped, as these
runs have millions of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from course.paper.workloads import MAX_MODEL_LEN, Request
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import Max, Oracle, Pow2, ReservationRule
from engine.baselines.scheduler import ContiguousScheduler
from engine.config import EngineConfig
from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.manager import KVCacheManager
from engine.sampling_params import SamplingParams
from engine.scheduler import Scheduler
from engine.sequence import Sequence as TokenSequence
from engine.sequence import SequenceGroup
from engine.trace.events import Event, RequestFinished, SequenceScheduled
from engine.trace.trace import Trace

NO_LIMIT = 1 << 30
"""Of sequences and tokens in a step."""
PAPER_BLOCK_SIZE = 16
"""vLLM's default in the paper (section 7.2)."""
RULES: dict[str, Callable[[int], ReservationRule]] = {"Max": Max, "Pow2": Pow2, "Oracle": Oracle}
MEMORIES = (*RULES, "Paged")
"""Orca with its three reservations, and pages: the systems of Figs. 2, 12, 13 and 17."""
NEXT_TOKEN = 0
WARM_UP = 0.2
"""Share of a trace's requests, from its start, that is not counted: the memory fills meanwhile."""
TOO_SHORT = "No request finished behind the warm-up: the trace is too short for this memory."


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did. num_seqs: sequences that ran, of which `num_prompts` computed `num_prompt_tokens`, their
    prompts (or what they had lost when they were preempted). num_context_tokens: tokens whose keys and values were
    read by the others. finished: numbers of requests.
    """

    num_seqs: int
    num_prompts: int
    num_prompt_tokens: int
    num_context_tokens: int
    finished: tuple[int, ...]

    @classmethod
    def of(cls, events: Iterable[Event], finished: tuple[int, ...]) -> Step:
        """Counted from the log of one step."""
        num_seqs = num_prompts = prompt_tokens = context = 0
        for event in events:
            if type(event) is SequenceScheduled:
                num_seqs += 1
                if event.num_new_tokens > 1 or event.start == 0:
                    num_prompts += 1
                    prompt_tokens += event.num_new_tokens
                else:
                    context += event.start + 1
        return cls(num_seqs, num_prompts, prompt_tokens, context, finished)


def finished_in(events: Iterable[Event]) -> tuple[int, ...]:
    """Numbers of the requests that the log says have finished."""
    return tuple(int(event.request_id) for event in events if type(event) is RequestFinished)


class Memory(Protocol):
    """Serves requests in order of arrival, one `step()` after another."""

    def add(self, request: Request) -> None:
        """Append a request to the waiting queue."""

    def step(self) -> Step:
        """Run one step of everything that fits."""

    @property
    def num_waiting(self) -> int:
        """Requests that wait, those that were preempted included."""

    @property
    def num_running(self) -> int:
        """Requests that hold memory."""


class ContiguousMemory:
    """Orca as the paper assumes it: a buddy allocator and a reservation rule."""

    def __init__(self, num_slots: int, rule: ReservationRule) -> None:
        self.trace = Trace()
        self.arena = Arena(num_slots, self.trace, rule, "buddy")
        self.scheduler = ContiguousScheduler(self.arena, ())

    def add(self, request: Request) -> None:
        """See Memory."""
        arrival = Arrival.from_lengths(str(request.number), request.num_prompt_tokens, request.num_output_tokens)
        self.arena.add(arrival)
        self.scheduler.waiting.append(arrival)

    def step(self) -> Step:
        """See Memory."""
        return self.step_with_events()[0]

    def step_with_events(self) -> tuple[Step, list[Event]]:
        """A step, and the log since the one before."""
        self.scheduler.step()
        events = self.trace.drain()
        return Step.of(events, finished_in(events)), events

    @property
    def num_waiting(self) -> int:
        """See Memory."""
        return len(self.scheduler.waiting)

    @property
    def num_running(self) -> int:
        """See Memory."""
        return len(self.scheduler.running)


def config_without_limits(num_slots: int, block_size: int, *, prefix_caching: bool = False) -> EngineConfig:
    """Blocks for so many tokens, and no limit but them on what runs in a step."""
    return EngineConfig(
        block_size=block_size,
        num_blocks=num_slots // block_size,
        max_num_seqs=NO_LIMIT,
        max_num_batched_tokens=NO_LIMIT,
        max_model_len=MAX_MODEL_LEN,
        enable_prefix_caching=prefix_caching,
    )


class PagedMemory:
    """The engine's own scheduler, block tables and pool. The next token of a sequence is always `NEXT_TOKEN`."""

    def __init__(self, num_slots: int, block_size: int = PAPER_BLOCK_SIZE, *, prefix_caching: bool = False) -> None:
        self.trace = Trace()
        config = config_without_limits(num_slots, block_size, prefix_caching=prefix_caching)
        pool = BlockPool(config.num_blocks, block_size, self.trace)
        self.kv = KVCacheManager(pool, enable_prefix_caching=prefix_caching)
        self.scheduler = Scheduler(config, self.kv, self.trace)

    def add(self, request: Request) -> None:
        """See Memory."""
        tokens = list(request.prompt) or [own_token(request.number)] * request.num_prompt_tokens
        sequence = TokenSequence(str(request.number), 0, tokens, len(tokens))
        params = SamplingParams(max_tokens=request.num_output_tokens, ignore_eos=True)
        self.scheduler.add(SequenceGroup(sequence.seq_id, request.number, params, 0, [sequence]))

    def step(self) -> Step:
        """See Memory."""
        finished = []
        for item in self.scheduler.schedule():
            self.kv.commit(item.sequence, item.num_new_tokens)
            if item.needs_logits:
                item.sequence.token_ids.append(NEXT_TOKEN)
                if item.sequence.num_tokens - item.sequence.num_prompt_tokens == item.group.params.max_tokens:
                    self.kv.free(item.sequence)
                    item.sequence.finish_reason = "length"
                    self.scheduler.finish(item.group)
                    finished.append(int(item.group.request_id))
        return Step.of(self.trace.drain(), tuple(finished))

    @property
    def num_waiting(self) -> int:
        """See Memory."""
        return len(self.scheduler.waiting)

    @property
    def num_running(self) -> int:
        """See Memory."""
        return len(self.scheduler.running)


def own_token(number: int) -> int:
    """A token id that no other number has, and no output."""
    return -1 - number


def memory_of(name: str, num_slots: int, block_size: int = PAPER_BLOCK_SIZE) -> Memory:
    """One of `MEMORIES` with so many slots."""
    if name in RULES:
        return ContiguousMemory(num_slots, RULES[name](MAX_MODEL_LEN))
    return PagedMemory(num_slots, block_size)


@dataclass(frozen=True, slots=True)
class Saturated:
    """A memory whose queue is never empty, so that memory alone decides.

    mean_running: sequences in a step, over the steps counted. requests_per_second: by each clock.
    prompt_tokens: tokens of prompts computed for each request that finished; recomputed ones count again.
    """

    mean_running: float
    requests_per_second: dict[str, float]
    prompt_tokens: float


StepTime = Callable[[Step], float]
"""Seconds of a step."""


def saturate(
    memory: Memory,
    requests: Sequence[Request],
    clocks: Mapping[str, StepTime],
    follow: Callable[[int], Request | None] = lambda _number: None,
) -> Saturated:
    """Queue all requests at once and run until none waits. Steps count from when `WARM_UP` of them have finished, as
    long as somebody still waits behind them.

    follow: what joins the queue when a request has finished. Raises ValueError when the trace is too short to count.
    """
    for request in requests:
        memory.add(request)
    num_finished, start = 0, WARM_UP * len(requests)
    num_steps = num_seqs = num_counted = prompt_tokens = 0
    seconds = dict.fromkeys(clocks, 0.0)
    while memory.num_waiting:
        step = memory.step()
        if num_finished >= start and memory.num_waiting:
            num_steps += 1
            num_seqs += step.num_seqs
            num_counted += len(step.finished)
            prompt_tokens += step.num_prompt_tokens
            for name, clock in clocks.items():
                seconds[name] += clock(step)
        num_finished += len(step.finished)
        for number in step.finished:
            if (next_request := follow(number)) is not None:
                memory.add(next_request)
    if not num_counted:
        raise ValueError(TOO_SHORT)
    rates = {name: num_counted / taken for name, taken in seconds.items()}
    return Saturated(num_seqs / num_steps, rates, prompt_tokens / num_counted)


def normalized_latency(
    memory: Memory,
    requests: Sequence[Request],
    rate: float,
    step_time: StepTime,
    note: Callable[[int], None] = lambda _num_seqs: None,
) -> float:
    """The paper's metric: mean over requests of latency over output length, in seconds a token (section 6.1).

    `rate`: requests a second. The first `WARM_UP` of the requests are served but not counted. `note` is told how many
    sequences ran in each step.
    """
    clock, coming, latencies = 0.0, 0, []
    first_counted = WARM_UP * len(requests)
    while coming < len(requests) or memory.num_running or memory.num_waiting:
        if not (memory.num_running or memory.num_waiting):
            clock = max(clock, requests[coming].arrival / rate)
        while coming < len(requests) and requests[coming].arrival / rate <= clock:
            memory.add(requests[coming])
            coming += 1
        step = memory.step()
        note(step.num_seqs)
        clock += step_time(step)
        for number in step.finished:
            if number >= first_counted:
                latencies.append((clock - requests[number].arrival / rate) / requests[number].num_output_tokens)
    return sum(latencies) / len(latencies)
