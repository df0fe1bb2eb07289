"""The run step by step, folded from its trace: requests, tokens and blocks after each step, and how fast it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import streamlit as st

from engine.i18n import _, blocks_counted, counted, tokens_counted
from engine.trace.events import StepCompleted, TokenSampled
from engine.trace.state import CacheState
from engine.trace.trace import Trace
from engine.trace.usage import Usage, usage_of
from views.html_parts import escaped, figures
from views.server.engine_session import EngineSession

MOST_STEPS_DRAWN = 120
STEPS_OF_THE_RATE = 10
"""Tokens a second is over so many steps: one alone says more about the machine's other work."""
NOT_STARTED = ("waiting", "refused")
_KEY = "run_history"


@dataclass(frozen=True, slots=True)
class StepSummary:
    """After one step. num_requests: all that were added. num_started: of them, those that ran. num_output_tokens: of
    the sequence that has most. num_sampled: tokens that this step chose.
    elapsed_ms: what the step took, 0 before the first one."""

    usage: Usage
    num_requests: int
    num_started: int
    num_output_tokens: int
    num_sampled: int
    elapsed_ms: float


@dataclass
class RunHistory:
    """`steps[i]` is the run after step i; entry 0 is what was there before the first step."""

    steps: list[StepSummary] = field(default_factory=list)
    _state: CacheState = field(default_factory=CacheState)
    _num_read: int = 0
    _num_sampled: int = 0
    _elapsed_ms: float = 0.0

    def update(self, trace: Trace) -> None:
        """Read what the trace has gained."""
        new_events = trace.events[self._num_read :]
        self._num_read += len(new_events)
        step = len(self.steps) - 1
        for event in new_events:
            if event.step > step:
                self._summarize(step)
                step = event.step
                self._num_sampled, self._elapsed_ms = 0, 0.0
            self._state.apply(event)
            self._num_sampled += isinstance(event, TokenSampled)
            if isinstance(event, StepCompleted):
                self._elapsed_ms = event.elapsed_ms
        self._summarize(step)

    def last_step_where(self, holds: Callable[[StepSummary], bool]) -> int:
        """The last step after which it holds, of those before it first fails; 0 when it never holds."""
        failing = next((step for step, summary in enumerate(self.steps) if not holds(summary)), len(self.steps))
        return max(failing - 1, 0)

    @property
    def tokens_per_second(self) -> float:
        """New tokens over the engine's own time, of the last few steps; 0 before the first one."""
        return _rate(self.steps[-STEPS_OF_THE_RATE:])

    def _summarize(self, step: int) -> None:
        """The state now is the one after `step`; steps that were passed over changed nothing."""
        if step < 0:
            return
        sequences = self._state.sequences.values()
        summary = StepSummary(
            usage_of(self._state),
            len(self._state.requests),
            sum(request.status not in NOT_STARTED for request in self._state.requests.values()),
            max((sequence.num_tokens - sequence.num_prompt_tokens for sequence in sequences), default=0),
            self._num_sampled,
            self._elapsed_ms,
        )
        del self.steps[step:]
        self.steps += [summary] * (step + 1 - len(self.steps))


def history_of(session: EngineSession) -> RunHistory:
    """Of this tab's run, up to now."""
    histories: dict[str, RunHistory] = st.session_state.setdefault(_KEY, {})
    if session.frames.trace_id not in histories:
        histories.clear()  # of the run before
    history = histories.setdefault(session.frames.trace_id, RunHistory())
    history.update(session.engine.trace)
    return history


def usage_line(history: RunHistory) -> str:
    """The counts of now in one line, and how they came to be as a small chart."""
    now = history.steps[-1].usage
    line = figures(
        [
            ("step", _("Step"), str(len(history.steps) - 1)),
            ("used", _("Blocks used"), str(now.num_used_blocks)),
            ("cached", _("Cached"), str(now.num_cached_blocks)),
            ("free", _("Free"), str(now.num_free_blocks)),
            (
                "written",
                _("Slots written"),
                _("{written} of {held}").format(written=now.num_written_slots, held=now.num_held_slots),
            ),
            ("copies_avoided", _("Saved by sharing"), str(now.num_copies_avoided)),
            ("rate", _("Tokens/s"), f"{history.tokens_per_second:.0f}"),
        ]
    )
    return f'<div class="pv-usage">{line}{_chart(history)}</div>'


def _chart(history: RunHistory) -> str:
    """Blocks used, cached above them, free above those; below, tokens a second. Steps run from left to right."""
    shown = list(islice(history.steps, max(0, len(history.steps) - MOST_STEPS_DRAWN), None))
    blocks = shown[-1].usage.num_blocks
    used = [summary.usage.num_used_blocks / blocks for summary in shown]
    held = [(summary.usage.num_used_blocks + summary.usage.num_cached_blocks) / blocks for summary in shown]
    rates = [_rate([summary]) for summary in shown]
    fastest = max(rates) or 1.0
    most = max(summary.usage.num_used_blocks for summary in shown)
    words = counted(
        "Over {n} step, at most {most} of {blocks} were used, and at most {rate} were generated a second.",
        "Over the last {n} steps, at most {most} of {blocks} were used, and at most {rate} were generated a second.",
        len(shown),
        most=most,
        blocks=blocks_counted(blocks),
        rate=tokens_counted(round(max(rates))),
    )
    return (
        f'<div class="pv-spark" role="img" aria-label="{escaped(words)}">'
        f'<div class="blocks"><span class="cached" style="{_area(held)}"></span>'
        f'<span class="used" style="{_area(used)}"></span></div>'
        f'<div class="rate"><span style="{_area([rate / fastest for rate in rates])}"></span></div></div>'
    )


def _rate(steps: list[StepSummary]) -> float:
    elapsed_ms = sum(summary.elapsed_ms for summary in steps)
    return 1000 * sum(summary.num_sampled for summary in steps) / elapsed_ms if elapsed_ms else 0.0


def _area(shares: list[float]) -> str:
    """A bar a step, each from the bottom to its share of the height, as one clipped box."""
    corners = ["0% 100%"]
    for number, share in enumerate(shares):
        height = f"{100 - 100 * share:.1f}%"
        corners += [f"{100 * at / len(shares):.2f}% {height}" for at in (number, number + 1)]
    return f"clip-path: polygon({', '.join([*corners, '100% 100%'])})"
