"""Recompute against swap: the same requests in a pool too small for them, both ways of making room, with their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.components import can_be_batch_invariant
from engine.config import EngineConfig
from engine.engine import Engine, Prompt
from engine.inspect.scratch import ComponentsFactory, Reply, replies_of, run_in_turn
from engine.sampling_params import SamplingParams
from engine.trace.events import (
    BlockSwappedIn,
    BlockSwappedOut,
    PreemptionMode,
    RequestAdmitted,
    RequestPreempted,
    SequenceScheduled,
)
from engine.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class PreemptionRun:
    """One of the two.

    `num_recomputed_tokens` were computed a second time; `num_swapped_out`, `num_swapped_in`: blocks copied.
    `preempted` and `resumed`: (step, request id) of every time a request gave its blocks back, and had them again.
    """

    mode: PreemptionMode
    replies: tuple[Reply, ...]
    num_preemptions: int
    num_recomputed_tokens: int
    num_swapped_out: int
    num_swapped_in: int
    num_steps: int
    preempted: tuple[tuple[int, str], ...]
    resumed: tuple[tuple[int, str], ...]
    trace: Trace


@dataclass(frozen=True, slots=True)
class PreemptionComparison:
    """The same requests, preempted by recomputation and by swapping."""

    recompute: PreemptionRun
    swap: PreemptionRun

    @property
    def are_replies_equal(self) -> bool:
        """Whether both ways generated the same tokens."""
        return self.recompute.replies == self.swap.replies


def compare_preemption(
    make_components: ComponentsFactory, config: EngineConfig, prompts: Sequence[Prompt], params: SamplingParams
) -> PreemptionComparison:
    """Run to the end both ways, swap space as large as the pool (paper section 4.5) and no prefix cache.

    A prefix cache would find a preempted request's own blocks again, and hide what recomputing costs.
    `course/preemption/cost.py` measures the time. Both are batch invariant where the device can be: their replies
    are then equal, and elsewhere equal to rounding, which can change a token. Raises RequestRefusedError for a prompt
    that cannot run alone in this pool.
    """
    config = replace(config, batch_invariant=can_be_batch_invariant(config))
    engines = [Engine(c, make_components(c)) for c in preemption_configs(config)]
    names = [[engine.add_request(prompt, params) for prompt in prompts] for engine in engines]
    run_in_turn(engines)
    return PreemptionComparison(*map(_run_of, engines, names))


def preemption_configs(config: EngineConfig) -> tuple[EngineConfig, EngineConfig]:
    """The config with recomputation, and with swapping to a CPU pool as large as the pool."""
    config = replace(config, enable_prefix_caching=False, parallel_sampling="fork")
    return (
        replace(config, preemption_mode="recompute", num_cpu_blocks=0),
        replace(config, preemption_mode="swap", num_cpu_blocks=config.num_blocks),
    )


def blocks_that_preempt(config: EngineConfig, num_prompt_tokens: Sequence[int], max_tokens: int) -> int | None:
    """The largest pool, in blocks, in which these requests start together and cannot all finish together.

    None when growing takes no block. Lengths are counted up to `max_tokens`, as if no reply ended before.
    """

    def blocks(num_tokens: int) -> int:
        return -(-num_tokens // config.block_size)

    at_start = sum(blocks(length) for length in num_prompt_tokens)
    at_end = sum(blocks(length + max_tokens - 1) for length in num_prompt_tokens)
    return at_end - 1 if at_end > at_start else None


def _run_of(engine: Engine, names: Sequence[str]) -> PreemptionRun:
    trace = engine.trace
    return PreemptionRun(
        mode=engine.config.preemption_mode,
        replies=replies_of(engine, names),
        num_preemptions=sum(isinstance(event, RequestPreempted) for event in trace),
        num_recomputed_tokens=sum(e.num_recomputed_tokens for e in trace if isinstance(e, SequenceScheduled)),
        num_swapped_out=len({(e.step, e.cpu_block_id) for e in trace if isinstance(e, BlockSwappedOut)}),
        num_swapped_in=len({(e.step, e.cpu_block_id) for e in trace if isinstance(e, BlockSwappedIn)}),
        num_steps=trace.num_steps,
        preempted=tuple((event.step, event.request_id) for event in trace if isinstance(event, RequestPreempted)),
        resumed=tuple(
            (event.step, event.request_id)
            for event in trace
            if isinstance(event, RequestAdmitted) and event.queue != "waiting"
        ),
        trace=trace,
    )
