"""Actions that callers took on an engine between its steps, read from its trace; sampling params come from the engine.

An event stamped with step s that comes after that step's StepCompleted (or at step 0) was not the scheduler's doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from engine.admission import RequestRefusedError
from engine.engine import Engine
from engine.trace.events import (
    AllBlocksCleared,
    BlocksShuffled,
    Event,
    RequestAdded,
    RequestFinished,
    RequestPreempted,
    SequenceForked,
    StepCompleted,
)


@dataclass(frozen=True, slots=True)
class Action:
    """Something done when step `after_step` was over."""

    after_step: int
    perform: Callable[[Engine], object]


def actions_of(engine: Engine) -> tuple[Action, ...]:
    """Everything that was done to the engine between its steps, in order."""
    is_between_steps, step, actions = True, 0, []
    for event in engine.trace:
        if event.step != step:
            is_between_steps, step = False, event.step
        if is_between_steps and (perform := _action(engine, event)):
            actions.append(Action(event.step, perform))
        is_between_steps = is_between_steps or isinstance(event, StepCompleted)
    return tuple(actions)


def perform_actions(engine: Engine, actions: tuple[Action, ...]) -> None:
    """Do what was done after the engine's current step. What an engine with other settings refuses is in its log."""
    for action in actions:
        if action.after_step == engine.trace.step:
            try:
                action.perform(engine)
            except RequestRefusedError:
                continue


def _action(engine: Engine, event: Event) -> Callable[[Engine], object] | None:
    match event:
        case RequestAdded(request_id=name, prompt_token_ids=prompt):
            group = next(group for group in engine.groups if group.request_id == name)
            params = replace(group.params, seed=group.seed)
            return lambda other: other.add_request(prompt, params, name)
        case RequestFinished(request_id=name, reason="abort"):
            return lambda other: other.abort_request(name)
        case SequenceForked(parent_seq_id=parent, seq_id=name, request_id=request) if name == request:
            seed = next(group for group in engine.groups if group.request_id == name).seed
            return lambda other: other.fork_request(parent, seed)
        case RequestPreempted(request_id=name):
            return lambda other: other.preempt_request(name)
        case BlocksShuffled(permutation=permutation):
            return lambda other: _shuffle(other, permutation)
        case AllBlocksCleared():
            return lambda other: other.clear_prefix_cache()
    return None


def _shuffle(engine: Engine, permutation: tuple[int, ...]) -> None:
    """A permutation fits a pool of its own size only; another pool keeps its order."""
    if len(permutation) == engine.config.num_blocks:
        engine.shuffle_blocks(permutation)


def last_action_step(actions: tuple[Action, ...]) -> int:
    """The step after which the last action was done; 0 without actions."""
    return max((action.after_step for action in actions), default=0)


def steps_with_work(engine: Engine, actions: tuple[Action, ...], max_steps: int) -> Iterator[int]:
    """Count steps as long as something is unfinished or still to be done, up to `max_steps`."""
    last = last_action_step(actions)
    while engine.trace.step < max_steps and (engine.has_unfinished_requests() or engine.trace.step < last):
        yield engine.trace.step + 1
