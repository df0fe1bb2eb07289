"""Recompute against swap: the same requests in a pool too small for them, both ways of making room, with their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.config import EngineConfig
from engine.engine import Engine, Prompt
from engine.events import (
    BlockSwappedIn,
    BlockSwappedOut,
    PreemptionMode,
    RequestPreempted,
    SequenceScheduled,
    StepCompleted,
)
from engine.lab.scratch import PartsMaker, Reply, replies_of, run_in_turn
from engine.sampling_params import SamplingParams
from engine.trace import Trace


@dataclass(frozen=True, slots=True)
class PreemptionLane:
    """One way. `elapsed_ms`: wall time of all steps, measured in this run, on this machine; it varies from run to run.

    `num_recomputed_tokens` were computed a second time; `num_swapped_out` and `num_swapped_in` count blocks copied.
    """

    mode: PreemptionMode
    replies: tuple[Reply, ...]
    num_preemptions: int
    num_recomputed_tokens: int
    num_swapped_out: int
    num_swapped_in: int
    num_steps: int
    elapsed_ms: float
    trace: Trace


@dataclass(frozen=True, slots=True)
class PreemptionRace:
    recompute: PreemptionLane
    swap: PreemptionLane

    @property
    def are_replies_equal(self) -> bool:
        return self.recompute.replies == self.swap.replies


def preemption_race(
    make_parts: PartsMaker, config: EngineConfig, prompts: Sequence[Prompt], params: SamplingParams
) -> PreemptionRace:
    """Run to the end both ways, swap space as large as the pool (paper section 4.5) and no prefix cache.

    A prefix cache would find a preempted request's own blocks again, and hide what recomputing costs. The two engines
    step in turn, so that whatever else the machine is busy with slows both alike.
    Raises RequestRefusedError for a prompt that cannot run alone in this pool.
    """
    config = replace(config, enable_prefix_caching=False, parallel_sampling="fork")
    by_recompute = replace(config, preemption_mode="recompute", num_cpu_blocks=0)
    by_swap = replace(config, preemption_mode="swap", num_cpu_blocks=config.num_blocks)
    engines = [Engine(c, make_parts(c)) for c in (by_recompute, by_swap)]
    names = [[engine.add_request(prompt, params) for prompt in prompts] for engine in engines]
    run_in_turn(engines)
    return PreemptionRace(*(_lane(engine, their_names) for engine, their_names in zip(engines, names, strict=True)))


def blocks_that_preempt(config: EngineConfig, num_prompt_tokens: Sequence[int], max_tokens: int) -> int | None:
    """The largest pool, in blocks, in which these requests start together and cannot all finish together.

    None when growing takes no block. Lengths are counted up to `max_tokens`, as if no reply ended before.
    """

    def blocks(num_tokens: int) -> int:
        return -(-num_tokens // config.block_size)

    at_start = sum(blocks(length) for length in num_prompt_tokens)
    at_end = sum(blocks(length + max_tokens - 1) for length in num_prompt_tokens)
    return at_end - 1 if at_end > at_start else None


def _lane(engine: Engine, names: Sequence[str]) -> PreemptionLane:
    trace = engine.trace
    return PreemptionLane(
        mode=engine.config.preemption_mode,
        replies=replies_of(engine, names),
        num_preemptions=sum(isinstance(event, RequestPreempted) for event in trace),
        num_recomputed_tokens=sum(e.num_recomputed_tokens for e in trace if isinstance(e, SequenceScheduled)),
        num_swapped_out=len({(e.step, e.cpu_block_id) for e in trace if isinstance(e, BlockSwappedOut)}),
        num_swapped_in=len({(e.step, e.cpu_block_id) for e in trace if isinstance(e, BlockSwappedIn)}),
        num_steps=trace.num_steps,
        elapsed_ms=sum(event.elapsed_ms for event in trace if isinstance(event, StepCompleted)),
        trace=trace,
    )
