"""Branch a run: replay it up to a step, then continue its requests in an engine with other settings.

    branch = branch_at(past_of(engine), make_components, 12, replace(engine.config, block_size=16))
    branch.past, branch.future            two traces with one count of steps, for one chart
    run_usage(branch.future, 12)          memory usage after each of its steps

Requests are carried over, their keys and values are not. Like a server restarted with other settings, the new engine
recomputes the known tokens in its first steps, and its prefix cache starts empty. Sampled tokens stay, and each request
keeps its seed: with settings that only change where blocks lie, the text goes on as in the original run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engine.admission import RequestRefusedError
from engine.config import EngineConfig
from engine.engine import Engine
from engine.i18n import _, counted
from engine.inspect.replayed_actions import Action, actions_of, perform_actions, steps_with_work
from engine.inspect.scratch import MAX_STEPS, ComponentsFactory, first_difference
from engine.sampler import SampledToken
from engine.sequence import Sequence, SequenceGroup
from engine.trace.codec import event_to_dict
from engine.trace.events import SequenceForked, TokenSampled
from engine.trace.state import Counters
from engine.trace.trace import Trace, states
from engine.trace.usage import Usage, usage_of

Logprobs = dict[str, dict[int, float]]
"""By seq_id and position: how probable each chosen token was."""


@dataclass(frozen=True, slots=True)
class Branch:
    """`past`: the whole trace that was branched from. `future`: the trace from the branch on, beginning at `at_step`.

    `is_past_repeated`: the replay up to `at_step` wrote the same events (wall times and logprobs apart).
    `is_complete`: every request of the future finished within MAX_STEPS steps.
    """

    at_step: int
    past: Trace
    future: Trace
    is_past_repeated: bool
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Past:
    """What an engine did so far, ready to be replayed. Later steps of that engine do not change it."""

    config: EngineConfig
    trace: Trace
    actions: tuple[Action, ...]


def past_of(engine: Engine) -> Past:
    """The engine's run so far. Reads its log and runs no model."""
    return Past(engine.config, engine.trace.copy(), actions_of(engine))


def branch_at(past: Past, make_components: ComponentsFactory, at_step: int, config: EngineConfig) -> Branch:
    """Replay `past` up to `at_step` and continue in an engine of `config`; later actions are done at their own steps.

    Raises IndexError for a step that the trace does not have, ValueError when a sequence is too long for `config`.
    """
    if not 0 <= at_step <= past.trace.num_steps:
        raise IndexError(
            _("Step {at_step} is outside this trace, which has steps 0 to {num_steps}.").format(
                at_step=at_step, num_steps=past.trace.num_steps
            )
        )
    repeated = Engine(past.config, make_components(past.config))
    _run_until(repeated, past.actions, at_step)
    future = Engine(config, make_components(config))
    future.trace.step = at_step
    logprobs = _logprobs_of(repeated.trace)
    for group in repeated.groups:
        if not group.is_finished:
            _carry_over(group, future, logprobs)
    later = tuple(action for action in past.actions if action.after_step > at_step)
    _run_until(future, later, at_step + MAX_STEPS)
    return Branch(
        at_step=at_step,
        past=past.trace,
        future=future.trace,
        is_past_repeated=_records(repeated.trace, at_step) == _records(past.trace, at_step),
        is_complete=not future.has_unfinished_requests(),
    )


def _run_until(engine: Engine, actions: tuple[Action, ...], until_step: int) -> None:
    """Perform actions and step in turn, up to `until_step`, actions after that step included."""
    perform_actions(engine, actions)
    for _index in steps_with_work(engine, actions, until_step):
        engine.step()
        perform_actions(engine, actions)


def _carry_over(group: SequenceGroup, future: Engine, logprobs: Logprobs) -> None:
    """Queue the request in the new engine, with all its sequences and every token they know."""
    longest = max(seq.num_tokens for seq in group.live_sequences)
    if longest >= future.config.max_model_len:
        raise ValueError(
            counted(
                "{request_id} has {n} token already; max_model_len must be larger.",
                "{request_id} has {n} tokens already; max_model_len must be larger.",
                longest,
                request_id=group.request_id,
            )
        )
    first = group.sequences[0]
    prompt = first.token_ids[: first.num_prompt_tokens]
    try:
        future.add_request(prompt, replace(group.params, seed=group.seed), group.request_id)
    except RequestRefusedError:
        return  # the new engine has written why
    arrived = future.groups[-1]
    pairs = [(first, arrived.sequences[0]), *_fork_siblings(group, arrived, future)]
    for old, new in pairs:
        _append_known_tokens(old, new, future, logprobs)
    for old, new in pairs:
        if old.finish_reason:
            future.sequences.finish(new, old.finish_reason)


def _fork_siblings(group: SequenceGroup, arrived: SequenceGroup, future: Engine) -> list[tuple[Sequence, Sequence]]:
    """Fork the other sequences of the old group; returns (old, new). Samples created on arrival exist already."""
    there = {seq.seq_id: seq for seq in arrived.sequences}
    pairs = []
    for old in group.sequences[1:]:
        if old.seq_id not in there:
            arrived.next_index = old.index
            there[old.seq_id] = future.sequences.fork(arrived.sequences[0], arrived)
        pairs.append((old, there[old.seq_id]))
    arrived.next_index = max(arrived.next_index, group.next_index)
    return pairs


def _append_known_tokens(old: Sequence, new: Sequence, future: Engine, logprobs: Logprobs) -> None:
    for position in range(new.num_tokens, old.num_tokens):
        sampled = SampledToken(old.token_ids[position], logprobs[old.seq_id][position])
        future.sequences.append_token(new, sampled)
    new.num_ever_computed = old.num_ever_computed


def _logprobs_of(trace: Trace) -> Logprobs:
    logprobs: Logprobs = {}
    for event in trace:
        if isinstance(event, SequenceForked):
            logprobs[event.seq_id] = dict(logprobs.get(event.parent_seq_id, {}))
        elif isinstance(event, TokenSampled):
            logprobs.setdefault(event.seq_id, {})[event.position] = event.logprob or 0.0
    return logprobs


def _records(trace: Trace, until_step: int) -> list[dict[str, Any]]:
    """The events up to a step, without fields that differ from run to run."""
    records = [event_to_dict(event) for event in trace if event.step <= until_step]
    return [{k: v for k, v in record.items() if k not in ("elapsed_ms", "logprob")} for record in records]


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Memory usage of a run: `usage[i]` is after step `first_step + i`. `counters`: totals at its end."""

    first_step: int
    usage: tuple[Usage, ...]
    counters: Counters

    @property
    def last_step(self) -> int:
        """The last step that `usage` has."""
        return self.first_step + len(self.usage) - 1

    @property
    def peak_held_slots(self) -> int:
        """Slots held by used blocks after the fullest step."""
        return max(usage.num_held_slots for usage in self.usage)


def run_usage(trace: Trace, first_step: int) -> RunUsage:
    """Usage after each step from `first_step` on. Raises IndexError for a step that the trace does not have."""
    if not 0 <= first_step <= trace.num_steps:
        raise IndexError(
            _("Step {first_step} is outside this trace, which has steps 0 to {num_steps}.").format(
                first_step=first_step, num_steps=trace.num_steps
            )
        )
    usage = tuple(usage_of(state) for step, state in enumerate(states(trace)) if step >= first_step)
    return RunUsage(first_step, usage, trace.at(trace.num_steps).counters)


@dataclass(frozen=True, slots=True)
class ComparedSequence:
    """The first `num_compared` tokens of a sequence in two runs: as many as both have.

    `first_difference`: the index of the first token that differs, None when none does.
    """

    seq_id: str
    num_compared: int
    first_difference: int | None


def compare_sequences(one: Trace, other: Trace) -> tuple[ComparedSequence, ...]:
    """Every sequence that both runs have, in the order of `one`."""
    ours, theirs = one.at(one.num_steps).sequences, other.at(other.num_steps).sequences
    rows = []
    for seq_id in [seq_id for seq_id in ours if seq_id in theirs]:
        a, b = ours[seq_id].token_ids, theirs[seq_id].token_ids
        common = min(len(a), len(b))
        rows.append(ComparedSequence(seq_id, common, first_difference(a[:common], b[:common])))
    return tuple(rows)
