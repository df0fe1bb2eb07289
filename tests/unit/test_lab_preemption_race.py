"""Both ways of making room end in the same words, and each has its price."""

from __future__ import annotations

from engine import EngineConfig, SamplingParams
from engine.events import StepCompleted
from engine.lab.preemption_race import blocks_that_preempt, preemption_race
from engine.lab.scratch import parts_maker
from tests.helpers.models import loaded

PROMPTS = ["The red fox", "A blue whale"]
PARAMS = SamplingParams(max_tokens=10, ignore_eos=True)


def config(num_blocks: int) -> EngineConfig:
    return EngineConfig(model="tiny-random", block_size=4, num_blocks=num_blocks, attention_backend="reference")


def test_the_pool_that_just_preempts() -> None:
    # 11 + 9 and 12 + 9 tokens are written in the end: 5 and 6 blocks, of 3 and 3 at the start.
    assert blocks_that_preempt(config(99), [11, 12], 10) == 10
    assert blocks_that_preempt(config(99), [9], 4) is None
    for num_blocks, num_preemptions in ((11, 0), (10, 1)):
        race = preemption_race(parts_maker(loaded("tiny-random")), config(num_blocks), PROMPTS, PARAMS)
        assert race.recompute.num_preemptions == race.swap.num_preemptions == num_preemptions
        assert race.are_replies_equal


def test_what_each_way_costs() -> None:
    race = preemption_race(parts_maker(loaded("tiny-random")), config(10), PROMPTS, PARAMS)
    # B has written 12 + 8 tokens, in 5 blocks, when the 21st asks for an eleventh block.
    assert (race.recompute.num_recomputed_tokens, race.recompute.num_swapped_out) == (20, 0)
    assert (race.swap.num_recomputed_tokens, race.swap.num_swapped_out, race.swap.num_swapped_in) == (0, 5, 5)
    assert [len(reply.token_ids) for reply in race.swap.replies] == [10, 10]
    for lane in (race.recompute, race.swap):
        beats = [event for event in lane.trace if isinstance(event, StepCompleted)]
        assert lane.elapsed_ms == sum(beat.elapsed_ms for beat in beats) > 0
        assert lane.num_steps == len(beats)
