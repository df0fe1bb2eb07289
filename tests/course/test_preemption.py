"""Both ways of making room end in the same words, and each has its price."""

from __future__ import annotations

import pytest

from course.preemption.cost import preemption_cost, steps_with_adjacent
from course.preemption.experiment import blocks_that_preempt, compare_preemption
from course.spread import Spread
from engine import EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory
from engine.trace.events import SequenceScheduled, StepCompleted
from engine.trace.trace import Trace
from tests.helpers.models import loaded

PROMPTS = ["The red fox", "A blue whale"]
PARAMS = SamplingParams(max_tokens=10, ignore_eos=True)


def config(num_blocks: int) -> EngineConfig:
    return EngineConfig(model="tiny-random", block_size=4, num_blocks=num_blocks, attention_backend="reference")


def test_the_largest_pool_that_preempts() -> None:
    # 11 + 9 and 12 + 9 tokens are written in the end: 5 and 6 blocks, of 3 and 3 at the start.
    assert blocks_that_preempt(config(99), [11, 12], 10) == 10
    assert blocks_that_preempt(config(99), [9], 4) is None
    for num_blocks, num_preemptions in ((11, 0), (10, 1)):
        comparison = compare_preemption(components_factory(loaded("tiny-random")), config(num_blocks), PROMPTS, PARAMS)
        assert comparison.recompute.num_preemptions == comparison.swap.num_preemptions == num_preemptions
        assert comparison.are_replies_equal


def test_the_cost_of_recompute_and_swap() -> None:
    comparison = compare_preemption(components_factory(loaded("tiny-random")), config(10), PROMPTS, PARAMS)
    # B has written 12 + 8 tokens, in 5 blocks, when the 21st asks for an eleventh block.
    assert (comparison.recompute.num_recomputed_tokens, comparison.recompute.num_swapped_out) == (20, 0)
    swap = comparison.swap
    assert (swap.num_recomputed_tokens, swap.num_swapped_out, swap.num_swapped_in) == (0, 5, 5)
    assert [len(reply.token_ids) for reply in swap.replies] == [10, 10]
    for run in (comparison.recompute, comparison.swap):
        assert run.num_steps == len([event for event in run.trace if isinstance(event, StepCompleted)])
        assert (run.preempted, run.resumed) == (((10, "B"),), ((11, "B"),))


def timed(times_ms: list[float], recomputed: set[int]) -> Trace:
    """A trace of so many steps, some of which compute tokens again."""
    trace = Trace()
    for step, elapsed_ms in enumerate(times_ms, 1):
        trace.append(SequenceScheduled(step, "A", 0, 3, 3 if step in recomputed else 0))
        trace.append(StepCompleted(step, 3, 1, 0, elapsed_ms))
        trace.step = step
    return trace


@pytest.mark.parametrize(
    ("times_ms", "recomputed", "beside"),
    [
        ([1.0, 9.0, 2.0], {2}, [(9.0, 1.5)]),
        ([1.0, 9.0], {2}, [(9.0, 1.0)]),
        ([1.0, 9.0, 8.0, 2.0], {2, 3}, [(9.0, 1.5), (8.0, 1.5)]),
        ([9.0], {1}, []),
        ([1.0, 2.0], set(), []),
    ],
)
def test_a_step_is_compared_with_the_nearest_without_recomputation(
    times_ms: list[float], recomputed: set[int], beside: list[tuple[float, float]]
) -> None:
    assert steps_with_adjacent(timed(times_ms, recomputed)) == beside


def test_the_cost_of_a_preemption_excludes_the_rest_of_the_run() -> None:
    cost = preemption_cost(components_factory(loaded("tiny-random")), config(10), PROMPTS, PARAMS, repeats=2)
    assert cost is not None
    measured = (cost.recompute_steps, cost.adjacent_steps, cost.swap_out, cost.swap_in, cost.swap)
    assert all(len(spread.times_ms) == 2 and spread.lowest > 0 for spread in measured)
    for number in range(2):
        step, beside = cost.recompute_steps.times_ms[number], cost.adjacent_steps.times_ms[number]
        assert cost.recompute.times_ms[number] == step - beside
        assert cost.swap.times_ms[number] == cost.swap_out.times_ms[number] + cost.swap_in.times_ms[number]
        # One step of the eleven, the last, computes again; its only neighbour is the one before.
        assert (step, beside) == (cost.step_times[0][10].times_ms[number], cost.step_times[0][9].times_ms[number])
    assert [len(way) for way in cost.step_times] == [11, 11]


def test_without_a_preemption_there_is_nothing_to_time() -> None:
    assert preemption_cost(components_factory(loaded("tiny-random")), config(11), PROMPTS, PARAMS, repeats=1) is None


def test_a_spread_is_its_middle_and_its_ends() -> None:
    spread = Spread((5.0, 1.0, 2.0, 9.0, 3.0))
    assert (spread.median, spread.lowest, spread.highest) == (3.0, 1.0, 9.0)
