"""Blocks may lie anywhere, as long as the tables know."""

from __future__ import annotations

import pytest

from course.shuffle.experiment import moving_permutation, shuffle_experiment, shuffle_memory_only
from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory, run_to_end
from engine.kv_cache.invariants import InvariantError
from engine.trace.events import BlocksShuffled
from tests.helpers.models import loaded

CONFIG = EngineConfig(model="tiny-random", block_size=4, num_blocks=12, attention_backend="reference")
PARAMS = SamplingParams(max_tokens=12, ignore_eos=True)


@pytest.mark.parametrize("num_blocks", [2, 3, 12, 65])
def test_every_block_moves(num_blocks: int) -> None:
    permutation = moving_permutation(num_blocks, seed=3)
    assert sorted(permutation) == list(range(num_blocks))
    assert all(place != block for block, place in enumerate(permutation))
    assert permutation == moving_permutation(num_blocks, seed=3)


def test_a_single_block_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        moving_permutation(1, seed=0)


def test_updated_tables_keep_the_output_and_stale_tables_do_not() -> None:
    report = shuffle_experiment(components_factory(loaded("tiny-random")), CONFIG, ["The red fox", "A blue"], PARAMS)
    assert [len(reply.token_ids) for reply in report.untouched.replies] == [12, 12]
    assert report.with_tables.replies == report.untouched.replies and report.with_tables.is_same
    assert not report.memory_only.is_same
    # Step 2's token was chosen before the move, so a reply can differ from its third token on.
    assert all(index is None or index >= 2 for index in report.memory_only.first_differences)
    moves = [event for event in report.with_tables.trace if isinstance(event, BlocksShuffled)]
    assert moves == [BlocksShuffled(2, report.permutation)]
    assert not any(isinstance(event, BlocksShuffled) for event in report.memory_only.trace)


@pytest.mark.embedded
def test_the_embedded_model_needs_its_tables_too() -> None:
    config = EngineConfig(block_size=4, num_blocks=24)
    report = shuffle_experiment(
        components_factory(loaded(dtype="auto")),
        config,
        ["The capital of France is"],
        SamplingParams(max_tokens=8),
        seed=1,
    )
    assert "Paris" in report.untouched.replies[0].text
    assert report.with_tables.replies == report.untouched.replies
    assert report.memory_only.replies[0].token_ids[:2] == report.untouched.replies[0].token_ids[:2]
    assert not report.memory_only.is_same


def test_an_unrecorded_move_violates_an_invariant() -> None:
    engine = Engine(CONFIG, components_factory(loaded("tiny-random"))(CONFIG))
    engine.add_request("The red fox", PARAMS)
    run_to_end(engine, 2)
    engine.check_invariants()
    engine.shuffle_blocks(moving_permutation(12, seed=4))
    engine.check_invariants()
    shuffle_memory_only(engine, moving_permutation(12, seed=5))
    with pytest.raises(InvariantError) as caught:
        engine.check_invariants()
    assert caught.value.rule == "memory_follows_log"
