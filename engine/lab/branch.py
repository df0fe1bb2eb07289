"""Another future: repeat an engine's life up to a step, then let an engine with other settings take over.

    branch = branch_at(past_of(engine), make_parts, 12, replace(engine.config, block_size=16))
    branch.past, branch.future            two traces with one count of steps, for one chart

The requests move; their keys and values do not. Like a server restarted with other settings, the new engine computes
the known tokens once more in its first steps, and its prefix cache starts empty. Tokens already chosen stay; each
request keeps its seed, so with settings that only move memory about, the text goes on as it did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engine.admission import RequestRefusedError
from engine.config import EngineConfig
from engine.engine import Engine
from engine.event_codec import event_to_dict
from engine.events import SequenceForked, TokenSampled
from engine.lab.replayed_actions import Action, actions_of, perform_actions, steps_with_work
from engine.lab.scratch import MAX_STEPS, PartsMaker
from engine.sampler import Choice
from engine.sequence import Sequence, SequenceGroup
from engine.trace import Trace

Logprobs = dict[str, dict[int, float]]
"""By seq_id and position: how probable each chosen token was."""


@dataclass(frozen=True, slots=True)
class Branch:
    """`past` is the trace that was branched from, whole; `future` begins with the move, stamped with `at_step`.

    `is_past_repeated`: the life up to `at_step`, run again, wrote the same events (wall times and logprobs apart).
    `is_complete`: the future came to its end within MAX_STEPS steps.
    """

    at_step: int
    past: Trace
    future: Trace
    is_past_repeated: bool
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Past:
    """An engine's life so far, ready to be repeated. Later steps of that engine do not change it."""

    config: EngineConfig
    trace: Trace
    actions: tuple[Action, ...]


def past_of(engine: Engine) -> Past:
    """Only reads, and quickly: no model runs."""
    return Past(engine.config, engine.trace.copy(), actions_of(engine))


def branch_at(past: Past, make_parts: PartsMaker, at_step: int, config: EngineConfig) -> Branch:
    """Later requests, aborts and the rest come to the new engine at their own steps.

    Raises IndexError for a step that the trace does not have, ValueError when a sequence is too long for `config`.
    """
    if not 0 <= at_step <= past.trace.num_steps:
        raise IndexError(f"Step {at_step} is outside this trace, which has steps 0 to {past.trace.num_steps}.")
    repeated = Engine(past.config, make_parts(past.config))
    _live(repeated, past.actions, at_step)
    future = Engine(config, make_parts(config))
    future.trace.step = at_step
    logprobs = _logprobs_of(repeated.trace)
    for group in repeated.groups:
        if not group.is_finished:
            _move(group, future, logprobs)
    later = tuple(action for action in past.actions if action.after_step > at_step)
    _live(future, later, at_step + MAX_STEPS)
    return Branch(
        at_step=at_step,
        past=past.trace,
        future=future.trace,
        is_past_repeated=_told(repeated.trace, at_step) == _told(past.trace, at_step),
        is_complete=not future.has_unfinished_requests(),
    )


def _live(engine: Engine, actions: tuple[Action, ...], until_step: int) -> None:
    """Act and step in turn, up to `until_step`; what was done behind that step is done, too."""
    perform_actions(engine, actions)
    for _ in steps_with_work(engine, actions, until_step):
        engine.step()
        perform_actions(engine, actions)


def _move(group: SequenceGroup, future: Engine, logprobs: Logprobs) -> None:
    """The request joins the new engine's queue, with all its sequences and every token that they know."""
    longest = max(seq.num_tokens for seq in group.live_sequences)
    if longest >= future.config.max_model_len:
        raise ValueError(f"{group.request_id} has {longest} tokens already; max_model_len must be larger.")
    first = group.sequences[0]
    prompt = first.token_ids[: first.num_prompt_tokens]
    try:
        future.add_request(prompt, replace(group.params, seed=group.seed), group.request_id)
    except RequestRefusedError:
        return  # the new engine has written why
    arrived = future.groups[-1]
    twins = [(first, arrived.sequences[0]), *_fork_siblings(group, arrived, future)]
    for old, new in twins:
        _learn(old, new, future, logprobs)
    for old, new in twins:
        if old.finish_reason:
            future.lifecycle.end(new, old.finish_reason)


def _fork_siblings(group: SequenceGroup, arrived: SequenceGroup, future: Engine) -> list[tuple[Sequence, Sequence]]:
    """A sequence for each further one of the old group, under its old name (samples made on arrival are there)."""
    there = {seq.seq_id: seq for seq in arrived.sequences}
    twins = []
    for old in group.sequences[1:]:
        if old.seq_id not in there:
            arrived.next_index = old.index
            there[old.seq_id] = future.lifecycle.fork(arrived.sequences[0], arrived)
        twins.append((old, there[old.seq_id]))
    arrived.next_index = max(arrived.next_index, group.next_index)
    return twins


def _learn(old: Sequence, new: Sequence, future: Engine, logprobs: Logprobs) -> None:
    for position in range(new.num_tokens, old.num_tokens):
        choice = Choice(old.token_ids[position], logprobs[old.seq_id][position])
        future.lifecycle.append_token(new, choice)
    new.num_ever_computed = old.num_ever_computed


def _logprobs_of(trace: Trace) -> Logprobs:
    logprobs: Logprobs = {}
    for event in trace:
        if isinstance(event, SequenceForked):
            logprobs[event.seq_id] = dict(logprobs.get(event.parent_seq_id, {}))
        elif isinstance(event, TokenSampled):
            logprobs.setdefault(event.seq_id, {})[event.position] = event.logprob or 0.0
    return logprobs


def _told(trace: Trace, until_step: int) -> list[dict[str, Any]]:
    """The events up to a step, without what a second run measures or rounds anew."""
    told = [event_to_dict(event) for event in trace if event.step <= until_step]
    return [{k: v for k, v in record.items() if k not in ("elapsed_ms", "logprob")} for record in told]
