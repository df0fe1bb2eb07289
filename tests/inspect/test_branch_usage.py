"""Two runs side by side: counts after every step, and where their words part."""

from __future__ import annotations

import pytest

from engine import Engine, EngineConfig, SamplingParams, Trace
from engine.inspect.branch import ComparedSequence, compare_sequences, run_usage
from tests.helpers.hash_model import hash_engine


def run(prompt: list[int], block_size: int = 4, max_tokens: int = 6) -> Trace:
    engine: Engine = hash_engine(EngineConfig(block_size=block_size, num_blocks=12, max_model_len=40))
    engine.add_request(prompt, SamplingParams(max_tokens=max_tokens))
    while engine.has_unfinished_requests():
        engine.step()
    return engine.trace


def test_the_counts_of_every_step_from_the_first_on() -> None:
    future = run_usage(run([1, 2, 3]), 2)
    assert (future.first_step, future.last_step) == (2, 6)
    # 3 prompt tokens and one more after step 2; one more each step; the sixth token ends it and frees all.
    assert [usage.num_held_slots for usage in future.usage] == [4, 8, 8, 8, 0]
    assert (future.peak_held_slots, future.counters.num_allocations) == (8, 2)


def test_a_step_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError, match="steps 0 to 6"):
        run_usage(run([1, 2, 3]), 7)


def test_outputs_are_compared_up_to_the_shorter_run() -> None:
    assert compare_sequences(run([1, 2, 3]), run([1, 2, 3], block_size=3, max_tokens=4)) == (
        ComparedSequence("A", 7, None),
    )
    assert compare_sequences(run([1, 2, 3]), run([1, 2, 9])) == (ComparedSequence("A", 9, 2),)
