"""Scratch engines: built for one experiment, run, compared, thrown away. The weights are shared, the memory is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.components import EngineComponents, build_components
from engine.config import EngineConfig
from engine.engine import Engine
from engine.model.weights.load import LoadedModel

ComponentsFactory = Callable[[EngineConfig], EngineComponents]
"""Makes the components of one more engine, with a memory of its own."""

MAX_STEPS = 2_000
"""Where a scratch engine is stopped: an experiment may have broken it so that it never ends."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one sequence generated. `is_complete`: it ended by itself."""

    seq_id: str
    token_ids: tuple[int, ...]
    text: str
    is_complete: bool


def components_factory(loaded: LoadedModel) -> ComponentsFactory:
    """Engines around weights that are loaded already."""
    return lambda config: build_components(config, loaded)


def run_to_end(engine: Engine, max_steps: int = MAX_STEPS) -> bool:
    """Step until nothing is left to do. False when `max_steps` steps were not enough."""
    for _index in range(max_steps):
        if not engine.has_unfinished_requests():
            return True
        engine.step()
    return not engine.has_unfinished_requests()


def run_in_turn(engines: Sequence[Engine], max_steps: int = MAX_STEPS) -> None:
    """A step of each, then the next of each, until none has anything left to do, or after `max_steps` steps of each."""
    for _index in range(max_steps):
        unfinished = [engine for engine in engines if engine.has_unfinished_requests()]
        if not unfinished:
            return
        for engine in unfinished:
            engine.step()


def replies_of(engine: Engine, request_ids: Iterable[str]) -> tuple[Reply, ...]:
    """The reply of every sequence of these requests, in their order."""
    outputs = [output for request_id in request_ids for output in engine.output(request_id).outputs]
    return tuple(Reply(o.seq_id, o.token_ids, o.text, o.finish_reason is not None) for o in outputs)


def first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    """The first index at which two token lists, or texts, differ; where one ends, its length. None when equal."""
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))
