"""Memories that serve requests of given lengths: the engine's scheduler over pages, the contiguous one over an arena.

No model runs, for lengths decide everything about memory. Limits but memory there are none: every running sequence gets
its token in every step, and prompts run whole, as in the paper. The log of each step is counted and dropped, as these
runs have millions of events.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from course.paper.workloads import MAX_MODEL_LEN, Request
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import Max, Oracle, Pow2, ReservationRule
from engine.baselines.scheduler import ContiguousScheduler
from engine.config import EngineConfig
from engine.i18n import N_, _
from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.manager import KVCacheManager
from engine.sampling_params import SamplingParams
from engine.scheduler import Scheduler
from engine.sequence import Sequence as TokenSequence
from engine.sequence import SequenceGroup
from engine.trace.events import BlockSwappedIn, BlockSwappedOut, Event, RequestFinished, SequenceScheduled
from engine.trace.trace import Trace

NO_LIMIT = 1 << 30
"""Of sequences and tokens in a step."""
PAPER_BLOCK_SIZE = 16
"""vLLM's default in the paper (section 7.2)."""
RULES: dict[str, Callable[[int], ReservationRule]] = {"Max": Max, "Pow2": Pow2, "Oracle": Oracle}
MEMORIES = (*RULES, "Paged")
"""Orca with its three reservations, and pages: the systems of Figs. 2, 12, 13 and 17."""
NEXT_TOKEN = 0
"""Of the first sample."""
TOO_SHORT = N_("No request finished once the memory was full: the trace is too short for it.")


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did. num_seqs: sequences that ran, of which `num_prompts` computed `num_prompt_tokens`, their
    prompts (or what they had lost when they were preempted). num_context_tokens: tokens whose keys and values were
    read by the others. finished: numbers of requests. swapped_out, swapped_in: blocks moved to the CPU and back.
    """

    num_seqs: int
    num_prompts: int
    num_prompt_tokens: int
    num_context_tokens: int
    finished: tuple[int, ...]
    swapped_out: int = 0
    swapped_in: int = 0

    @classmethod
    def of(cls, events: Iterable[Event]) -> Step:
        """Counted from the log of one step."""
        num_seqs = num_prompts = prompt_tokens = context = swapped_out = swapped_in = 0
        finished = []
        for event in events:
            if type(event) is SequenceScheduled:
                num_seqs += 1
                if event.num_new_tokens > 1 or event.start == 0:
                    num_prompts += 1
                    prompt_tokens += event.num_new_tokens
                else:
                    context += event.start + 1
            elif type(event) is RequestFinished:
                finished.append(int(event.request_id))
            elif type(event) is BlockSwappedOut:
                swapped_out += 1
            elif type(event) is BlockSwappedIn:
                swapped_in += 1
        return cls(num_seqs, num_prompts, prompt_tokens, context, tuple(finished), swapped_out, swapped_in)


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
        return Step.of(events), events

    @property
    def num_waiting(self) -> int:
        """See Memory."""
        return len(self.scheduler.waiting)

    @property
    def num_running(self) -> int:
        """See Memory."""
        return len(self.scheduler.running)


def config_without_limits(
    num_slots: int, block_size: int, *, caching: bool = False, swap: bool = False
) -> EngineConfig:
    """Blocks for so many tokens, and no limit but them on what runs in a step.

    Swap space is as large as the pool: the paper's bound (section 4.5).
    """
    num_blocks = num_slots // block_size
    return EngineConfig(
        block_size=block_size,
        num_blocks=num_blocks,
        num_cpu_blocks=num_blocks if swap else 0,
        preemption_mode="swap" if swap else "recompute",
        max_num_seqs=NO_LIMIT,
        max_num_batched_tokens=NO_LIMIT,
        max_model_len=MAX_MODEL_LEN,
        enable_prefix_caching=caching,
    )


class PagedMemory:
    """The engine's own scheduler, block tables and pool. A request has `n` samples, which fork at the first token.

    The next token of a sequence is the number of its sample, so of two samples no two tokens are the same.
    """

    def __init__(
        self,
        num_slots: int,
        block_size: int = PAPER_BLOCK_SIZE,
        *,
        n: int = 1,
        prefix_caching: bool = False,
        swap: bool = False,
    ) -> None:
        self.trace = Trace()
        config = config_without_limits(num_slots, block_size, caching=prefix_caching, swap=swap)
        pool = BlockPool(config.num_blocks, block_size, self.trace, num_cpu_blocks=config.num_cpu_blocks)
        self.kv = KVCacheManager(pool, enable_prefix_caching=prefix_caching, num_cpu_blocks=config.num_cpu_blocks)
        self.scheduler = Scheduler(config, self.kv, self.trace)
        self._n = n

    def add(self, request: Request) -> None:
        """See Memory."""
        tokens = list(request.prompt) or [own_token(request.number)] * request.num_prompt_tokens
        sequence = TokenSequence(str(request.number), 0, tokens, len(tokens))
        params = SamplingParams(max_tokens=request.num_output_tokens, n=self._n, ignore_eos=True)
        self.scheduler.add(SequenceGroup(sequence.seq_id, request.number, params, 0, [sequence]))

    def step(self) -> Step:
        """See Memory."""
        for item in self.scheduler.schedule():
            self.kv.commit(item.sequence, item.num_new_tokens)
            if item.needs_logits:
                for sequence in (item.sequence, *self._fork_samples(item.group, item.sequence)):
                    self._append_token(item.group, sequence)
        return Step.of(self.trace.drain())

    def _fork_samples(self, group: SequenceGroup, first: TokenSequence) -> list[TokenSequence]:
        """The other samples, once the prompt is computed."""
        forks = []
        while len(group.sequences) < self._n:
            child = first.fork(*group.new_sequence_id())
            group.sequences.append(child)
            self.kv.fork(first, child)
            forks.append(child)
        return forks

    def _append_token(self, group: SequenceGroup, sequence: TokenSequence) -> None:
        sequence.token_ids.append(NEXT_TOKEN + sequence.index)
        if sequence.num_tokens - sequence.num_prompt_tokens == group.params.max_tokens:
            self.kv.free(sequence)
            sequence.finish_reason = "length"
            if group.is_finished:
                self.scheduler.finish(group)
                self.trace.append(RequestFinished(self.trace.step, group.request_id, "length"))

    @property
    def num_waiting(self) -> int:
        """See Memory."""
        return len(self.scheduler.waiting) + len(self.scheduler.swapped)

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
    num_slots: int,
    *,
    size: Callable[[Request], int] = lambda request: request.num_tokens,
    follow: Callable[[int], Request | None] = lambda _number: None,
    note: Callable[[], None] = lambda: None,
) -> Saturated:
    """Queue all requests at once and run until none waits. Steps count once those that have finished would fill the
    memory of `num_slots`: until then it fills for the first time, and the shortest requests end. They count as long as
    somebody waits.

    size: slots that a request takes. follow: what joins the queue when a request has finished. note: called after every
    step that counts. Raises ValueError when the trace is too short to count.
    """
    sizes: dict[int, int] = {}

    def add(request: Request) -> None:
        sizes[request.number] = size(request)
        memory.add(request)

    for request in requests:
        add(request)
    size_finished = num_steps = num_seqs = num_counted = prompt_tokens = 0
    seconds = dict.fromkeys(clocks, 0.0)
    while memory.num_waiting:
        step = memory.step()
        if size_finished >= num_slots and memory.num_waiting:
            num_steps += 1
            num_seqs += step.num_seqs
            num_counted += len(step.finished)
            prompt_tokens += step.num_prompt_tokens
            for name, clock in clocks.items():
                seconds[name] += clock(step)
            note()
        for number in step.finished:
            size_finished += sizes[number]
            if (next_request := follow(number)) is not None:
                add(next_request)
    if not num_counted:
        raise ValueError(_(TOO_SHORT))
    rates = {name: num_counted / taken for name, taken in seconds.items()}
    return Saturated(num_seqs / num_steps, rates, prompt_tokens / num_counted)


def normalized_latency(
    memory: Memory,
    requests: Sequence[Request],
    rate: float,
    step_time: StepTime,
    *,
    warm_up: int = 0,
    note: Callable[[int], None] = lambda _num_seqs: None,
) -> float:
    """The paper's metric: mean over requests of latency over output length, in seconds a token (section 6.1).

    `rate`: requests a second. The first requests, which would fill `warm_up` slots, are served but not counted. `note`
    is told how many sequences ran in each step. Raises ValueError when none is left to count.
    """
    clock, coming, latencies = 0.0, 0, []
    first_counted = bisect_left(list(accumulate((request.num_tokens for request in requests), initial=0)), warm_up)
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
    if not latencies:
        raise ValueError(_(TOO_SHORT))
    return sum(latencies) / len(latencies)
