"""What a preemption costs in time: the steps that compute again beside their neighbours, and the copies out and in.

A run has tens of steps, of which one or two differ; sums over whole runs compare the machine's other work. So only
what differs is timed, warm, both ways in turn, several times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import torch

from course.preemption.experiment import preemption_configs
from course.spread import Spread
from engine.config import EngineConfig
from engine.engine import Engine, Prompt
from engine.inspect.scratch import ComponentsFactory, run_in_turn
from engine.kv_cache.manager import BlockStore
from engine.sampling_params import SamplingParams
from engine.trace.events import SequenceScheduled, StepCompleted
from engine.trace.trace import Trace

REPEATS = 5


@dataclass(frozen=True, slots=True)
class PreemptionCost:
    """One value a repeat in each Spread; where several requests were preempted, the sum over all of them.

    recompute_steps: the steps that computed tokens again. adjacent_steps: as many of the steps just before and after
    them. recompute: the difference, which may be below 0 where the clock cannot tell them apart. swap_out, swap_in: the
    copies, without the steps around them; swap: both. step_times: for each way, each step of the run.
    """

    recompute_steps: Spread
    adjacent_steps: Spread
    recompute: Spread
    swap_out: Spread
    swap_in: Spread
    swap: Spread
    step_times: tuple[tuple[Spread, ...], tuple[Spread, ...]]


def preemption_cost(
    make_components: ComponentsFactory,
    config: EngineConfig,
    prompts: Sequence[Prompt],
    params: SamplingParams,
    repeats: int = REPEATS,
) -> PreemptionCost | None:
    """The runs of `compare_preemption` once to warm up and `repeats` times with a clock; the two ways step in turn.

    None when no token was computed again in a step that has a neighbour to compare with.
    Raises RequestRefusedError for a prompt that cannot run alone in this pool.
    """
    warm_up = _run_once(make_components, config, prompts, params)
    if not steps_with_adjacent(warm_up.recompute):
        return None
    runs = [_run_once(make_components, config, prompts, params) for _index in range(repeats)]
    return _cost(runs, [steps_with_adjacent(run.recompute) for run in runs])


def steps_with_adjacent(trace: Trace) -> list[tuple[float, float]]:
    """For each step that computed tokens again: its time, and the mean of the nearest other steps on its two sides.

    In ms. A step at the end of the trace has one neighbour; one without any is left out.
    """
    again = {e.step for e in trace if isinstance(e, SequenceScheduled) and e.num_recomputed_tokens}
    times = {e.step: e.elapsed_ms for e in trace if isinstance(e, StepCompleted)}
    beside = []
    for step in sorted(again):
        before = next((times[s] for s in range(step - 1, 0, -1) if s not in again), None)
        after = next((times[s] for s in range(step + 1, trace.num_steps + 1) if s not in again), None)
        if neighbours := [t for t in (before, after) if t is not None]:
            beside.append((times[step], mean(neighbours)))
    return beside


@dataclass(frozen=True, slots=True)
class _Timed:
    """One run of both ways."""

    recompute: Trace
    swap: Trace
    out_ms: float
    in_ms: float


class _TimedStore:
    """Does what the store does, and keeps the time of its copies between the device and the CPU."""

    def __init__(self, store: BlockStore) -> None:
        self._store = store
        self.copy_block = store.copy_block
        self.permute = store.permute
        self.out_ms = self.in_ms = 0.0

    def swap_out(self, src_to_dst: Sequence[tuple[int, int]]) -> None:
        self.out_ms += _time_of(lambda: self._store.swap_out(src_to_dst))

    def swap_in(self, src_to_dst: Sequence[tuple[int, int]]) -> None:
        self.in_ms += _time_of(lambda: self._store.swap_in(src_to_dst))


def _time_of(copy: Callable[[], None]) -> float:
    """Milliseconds, with everything before it done and itself done too where a GPU works behind our back."""
    _wait_for_device()
    started = time.perf_counter()
    copy()
    _wait_for_device()
    return (time.perf_counter() - started) * 1000


def _wait_for_device() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _run_once(
    make_components: ComponentsFactory, config: EngineConfig, prompts: Sequence[Prompt], params: SamplingParams
) -> _Timed:
    by_recompute, by_swap = preemption_configs(config)
    components = make_components(by_swap)
    assert components.store is not None, "a model keeps its keys and values somewhere"
    store = _TimedStore(components.store)
    engines = [Engine(by_recompute, make_components(by_recompute)), Engine(by_swap, replace(components, store=store))]
    for engine in engines:
        for prompt in prompts:
            engine.add_request(prompt, params)
    run_in_turn(engines)
    return _Timed(engines[0].trace, engines[1].trace, store.out_ms, store.in_ms)


def _cost(runs: Sequence[_Timed], beside: Sequence[list[tuple[float, float]]]) -> PreemptionCost:
    steps = tuple(sum(step for step, _index in pairs) for pairs in beside)
    neighbours = tuple(sum(around for _index, around in pairs) for pairs in beside)
    return PreemptionCost(
        recompute_steps=Spread(steps),
        adjacent_steps=Spread(neighbours),
        recompute=Spread(tuple(step - around for step, around in zip(steps, neighbours, strict=True))),
        swap_out=Spread(tuple(run.out_ms for run in runs)),
        swap_in=Spread(tuple(run.in_ms for run in runs)),
        swap=Spread(tuple(run.out_ms + run.in_ms for run in runs)),
        step_times=(
            tuple(_each_step(run.recompute for run in runs)),
            tuple(_each_step(run.swap for run in runs)),
        ),
    )


def _each_step(traces: Iterator[Trace]) -> Iterator[Spread]:
    times = [[event.elapsed_ms for event in trace if isinstance(event, StepCompleted)] for trace in traces]
    return (Spread(of_one_step) for of_one_step in zip(*times, strict=True))
