"""What the moments of a shuffle say memory holds is what the engine's own keys and values are."""

from __future__ import annotations

import pytest
import torch

from course.shuffle.experiment import ShuffleReport, shuffle_experiment, shuffle_memory_only
from course.shuffle.memory import MemorySnapshot, Move, moments, table_found
from engine import Engine, EngineConfig, SamplingParams
from engine.components import EngineComponents
from engine.inspect.scratch import components_factory, run_to_end
from engine.model.kv_store import KVStore
from tests.helpers.models import loaded

CONFIG = EngineConfig(
    model="tiny-random", block_size=4, num_blocks=8, enable_prefix_caching=False, attention_backend="reference"
)
PARAMS = SamplingParams(max_tokens=12, ignore_eos=True)
PROMPT, AFTER = "The red fox", 3
MOVES: tuple[Move, ...] = ("untouched", "with_tables", "memory_only")


def make_components(config: EngineConfig) -> EngineComponents:
    return components_factory(loaded("tiny-random"))(config)


@pytest.fixture(scope="module")
def report() -> ShuffleReport:
    return shuffle_experiment(make_components, CONFIG, [PROMPT], PARAMS, after_step=AFTER, seed=1)


def moved_engine(report: ShuffleReport, move: Move, until_step: int) -> Engine:
    """The same run by hand, stopped after a step, for its memory to be looked into."""
    engine = Engine(CONFIG, make_components(CONFIG))
    engine.add_request(PROMPT, PARAMS)
    run_to_end(engine, AFTER)
    if move == "with_tables":
        engine.shuffle_blocks(report.permutation)
    elif move == "memory_only":
        shuffle_memory_only(engine, report.permutation)
    run_to_end(engine, until_step - AFTER)
    return engine


def written_slots(moment: MemorySnapshot) -> set[tuple[int, int]]:
    """(block, offset) of every slot that holds something."""
    return {
        (block.block_id, offset)
        for block in moment.state.blocks
        for offset, content in enumerate(block.slots)
        if content is not None
    }


def nonzero_slots(engine: Engine) -> set[tuple[int, int]]:
    """The same, read from the keys themselves: an empty slot holds zeros."""
    store = engine.components.store
    assert isinstance(store, KVStore)
    return {(int(b), int(o)) for b, o in torch.nonzero(store.key_cache[0].abs().sum(dim=(-1, -2)))}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("until_step", [AFTER, AFTER + 1, AFTER + 6])
def test_a_frame_holds_what_the_keys_hold(report: ShuffleReport, move: Move, until_step: int) -> None:
    last = [moment for moment in moments(report, move) if moment.step == until_step][-1]
    engine = moved_engine(report, move, until_step)
    assert written_slots(last) == nonzero_slots(engine)
    assert last.state.sequences["A"].block_table == engine.kv.block_tables["A"]


@pytest.mark.parametrize("move", MOVES)
def test_frames_are_every_step_and_the_move_between_them(report: ShuffleReport, move: Move) -> None:
    told = [(moment.step, moment.is_move) for moment in moments(report, move)]
    steps = [(step, False) for step in range(13)]
    assert told == (steps if move == "untouched" else [*steps[: AFTER + 1], (AFTER, True), *steps[AFTER + 1 :]])


def test_with_its_tables_every_token_is_found_and_without_them_none(report: ShuffleReport) -> None:
    found = {move: [table_found(m.state, "A") for m in moments(report, move)] for move in MOVES}
    # 11 prompt tokens and 2 of the reply are written after step 3, in 4 blocks.
    assert [(t[AFTER].num_right, t[AFTER].num_wanted) for t in found.values()] == [(13, 13)] * 3
    assert all(table.num_right == table.num_wanted for table in found["with_tables"])
    moved = found["memory_only"][AFTER + 1]
    assert (moved.num_right, moved.num_wanted) == (0, 13)
    places = report.permutation
    assert [row.block_id for row in moved.rows] == [0, 1, 2, 3]
    assert [row.block_id for row in found["with_tables"][AFTER + 1].rows] == [places[i] for i in range(4)]
    # The next token is written where the table says, and is found there.
    assert (found["memory_only"][AFTER + 2].num_right, found["memory_only"][AFTER + 2].num_wanted) == (1, 14)


def test_before_it_arrives_and_when_it_has_ended_a_sequence_has_no_table(report: ShuffleReport) -> None:
    *_, last = moments(report, "untouched")
    assert table_found(last.state, "A").rows == () == table_found(last.state, "nobody").rows


def test_a_reply_that_ends_before_the_move_is_moved_at_its_end() -> None:
    short = shuffle_experiment(
        make_components, CONFIG, [PROMPT], SamplingParams(max_tokens=2, ignore_eos=True), after_step=9, seed=1
    )
    told = [(moment.step, moment.is_move) for moment in moments(short, "memory_only")]
    assert told == [(0, False), (1, False), (2, False), (2, True)]
