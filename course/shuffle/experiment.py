"""Permute the blocks of a running engine, once with the block tables and once without them, and compare the replies.

Both moves take the same seeded permutation, in which no block stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from engine.components import can_be_batch_invariant
from engine.config import EngineConfig
from engine.engine import Engine, Prompt
from engine.i18n import _
from engine.inspect.scratch import ComponentsFactory, Reply, first_difference, replies_of, run_to_end
from engine.sampling_params import SamplingParams
from engine.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class ShuffledRun:
    """One run. `first_differences`: for each reply the index of the first token unlike the untouched run's, or None."""

    replies: tuple[Reply, ...]
    first_differences: tuple[int | None, ...]
    trace: Trace

    @property
    def is_same(self) -> bool:
        """Whether every reply is that of the untouched run."""
        return all(index is None for index in self.first_differences)


@dataclass(frozen=True, slots=True)
class ShuffleReport:
    """The same prompts three times; after step `after_step` block i went to place `permutation[i]` in the last two."""

    after_step: int
    permutation: tuple[int, ...]
    untouched: ShuffledRun
    with_tables: ShuffledRun
    memory_only: ShuffledRun


def shuffle_experiment(
    make_components: ComponentsFactory,
    config: EngineConfig,
    prompts: Sequence[Prompt],
    params: SamplingParams,
    *,
    after_step: int = 2,
    seed: int = 0,
) -> ShuffleReport:
    """Run the prompts untouched, with everything moved, and with only memory moved.

    All three are batch invariant where the device can be, so that nothing but the move can change a bit.
    Raises RequestRefusedError for a prompt that cannot run, ValueError for a pool of one block.
    """
    permutation = moving_permutation(config.num_blocks, seed)
    config = replace(config, batch_invariant=can_be_batch_invariant(config))
    engines = [Engine(config, make_components(config)) for _index in range(3)]
    names = [_start(engine, prompts, params, after_step) for engine in engines]
    untouched, with_tables, memory_only = engines
    with_tables.shuffle_blocks(permutation)
    shuffle_memory_only(memory_only, permutation)
    for engine in engines:
        run_to_end(engine)
    healthy = replies_of(untouched, names[0])
    runs = [_compared(engine, name, healthy) for engine, name in zip(engines, names, strict=True)]
    return ShuffleReport(after_step, permutation, *runs)


def moving_permutation(num_blocks: int, seed: int) -> tuple[int, ...]:
    """A seeded permutation of block ids in which every block moves: one cycle through all (Sattolo 1986)."""
    if num_blocks < 2:
        raise ValueError(_("One block alone has no other place to go to; the pool needs at least 2."))
    random, permutation = Random(seed), list(range(num_blocks))
    for last in range(num_blocks - 1, 0, -1):
        other = random.randrange(last)
        permutation[last], permutation[other] = permutation[other], permutation[last]
    return tuple(permutation)


def shuffle_memory_only(engine: Engine, permutation: Sequence[int]) -> None:
    """Permute keys and values alone: block tables and trace keep the old block ids, so the engine reads wrong blocks.

    Raises ValueError for an engine without keys and values (scripted words).
    """
    if engine.components.store is None:
        raise ValueError(_("This engine has no memory to shuffle: its words come from a script."))
    engine.components.store.permute(permutation)


def _start(engine: Engine, prompts: Sequence[Prompt], params: SamplingParams, num_steps: int) -> list[str]:
    names = [engine.add_request(prompt, params) for prompt in prompts]
    run_to_end(engine, num_steps)
    return names


def _compared(engine: Engine, names: Sequence[str], healthy: Sequence[Reply]) -> ShuffledRun:
    replies = replies_of(engine, names)
    differences = [first_difference(a.token_ids, b.token_ids) for a, b in zip(replies, healthy, strict=True)]
    return ShuffledRun(replies, tuple(differences), engine.trace)
