"""Rules that the random lives never break, each broken here by hand: the rule is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory
from engine.kv_cache.invariants import InvariantError
from tests.helpers.models import loaded

CONFIG = EngineConfig(
    model="tiny-random", block_size=4, num_blocks=16, num_cpu_blocks=16, preemption_mode="swap",
    attention_backend="reference",
)  # fmt: skip


@pytest.fixture
def engine() -> Engine:
    """Ten prompt tokens and two chosen ones, eleven of them written: blocks 0, 1 full, block 2 holds three."""
    engine = Engine(CONFIG, components_factory(loaded("tiny-random"))(CONFIG))
    engine.add_request("0123456789", SamplingParams(max_tokens=20, ignore_eos=True, n=2))
    for _ in range(2):  # the second step copies on write
        engine.step()
        engine.check_invariants()
    return engine


def broken_rule(engine: Engine) -> str:
    with pytest.raises(InvariantError) as caught:
        engine.check_invariants()
    return caught.value.rule


def test_no_token_to_run(engine: Engine) -> None:
    seq = engine.scheduler.running[0].live_sequences[0]
    engine.kv.commit(seq, 1)  # as if the newest token had been computed, with nothing chosen after it
    assert broken_rule(engine) == "token_to_run"


def test_an_inconsistent_block_table(engine: Engine) -> None:
    table = engine.kv.block_tables["A"]
    table[0], table[1] = table[1], table[0]
    with pytest.raises(InvariantError, match="looks for its token 0 in slot 4 and finds token 4 of A"):
        engine.check_invariants()


@pytest.mark.parametrize("slot", [0, 10, 63])
def test_a_write_without_an_event(engine: Engine, slot: int) -> None:
    engine.components.store.key_cache[0].view(64, 2, 16)[slot, 1, 15] += 1e-6  # type: ignore[union-attr]
    with pytest.raises(InvariantError, match=rf"memory_follows_log: slots \[{slot}\] changed"):
        engine.check_invariants()


@pytest.mark.parametrize(
    "act",
    [
        Engine.step,
        lambda engine: engine.shuffle_blocks([3, 0, 1, 2, *range(15, 3, -1)]),
        lambda engine: (engine.shuffle_blocks([1, 0, *range(2, 16)]), engine.step()),
        lambda engine: (engine.preempt_request("A"), engine.step(), engine.step()),
    ],
    ids=["written", "moved", "moved and written", "swapped out and in"],
)
def test_a_write_with_its_event(engine: Engine, act: Callable[[Engine], object]) -> None:
    before = engine.components.store.key_cache.clone()  # type: ignore[union-attr]
    act(engine)
    assert not before.equal(engine.components.store.key_cache)  # type: ignore[union-attr]
    engine.check_invariants()
