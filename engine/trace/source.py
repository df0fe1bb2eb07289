"""Where a trace comes from: our engine, a file, a remote server. Pages use this interface and do not know which.

What a source does not know is None or empty, and pages show it as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.trace.event_base import Event
from engine.trace.per_second import SecondStats, per_second_of
from engine.trace.state import CacheState
from engine.trace.trace import Trace

LONGEST_NAME, MOST_BLOCKS = 200, 1 << 30


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a source says of itself.

    name: for the heading. is_live: more may come. is_recorded: what is shown happened earlier.
    model: whose tokens these are, or None. num_blocks: size of the server's pool, or None when it does not say.
    """

    name: str
    is_live: bool = False
    is_recorded: bool = False
    model: str | None = None
    num_blocks: int | None = None


def info_of(facts: SourceFacts, kind: str) -> dict[str, Any]:
    """What a trace made from such a source says of itself. `kind`: "server" or "recording"."""
    known = {"name": facts.name, "model": facts.model, "server_num_blocks": facts.num_blocks}
    return {"source": kind} | {key: value for key, value in known.items() if value is not None}


def facts_of(info: Mapping[str, Any], name: str) -> SourceFacts:
    """What a trace that was opened under `name` says of its source. It is foreign: odd values are left out."""
    model, num_blocks = info.get("model"), info.get("server_num_blocks")
    return SourceFacts(
        name,
        is_recorded=True,
        model=model[:LONGEST_NAME] if isinstance(model, str) else None,
        num_blocks=num_blocks if type(num_blocks) is int and 0 < num_blocks < MOST_BLOCKS else None,
    )


class TraceSource(Protocol):
    """A trace as far as it was seen."""

    @property
    def facts(self) -> SourceFacts:
        """What the source says of itself, now."""
        ...

    @property
    def first_step(self) -> int:
        """The earliest moment that can still be shown."""
        ...

    @property
    def last_step(self) -> int:
        """The newest step."""
        ...

    def at(self, step: int) -> CacheState:
        """The state after `step`, a copy of your own. Raises IndexError outside first_step..last_step."""
        ...

    def events_of(self, step: int) -> Sequence[Event]:
        """The events stamped with `step`, in order."""
        ...

    def per_second(self) -> Sequence[SecondStats]:
        """Blocks stored and removed by seconds; empty where the source gives no times."""
        ...

    @property
    def quiet_seconds(self) -> float:
        """Since the last message; 0 when no more can come."""
        ...

    def trace(self) -> Trace:
        """Everything that can still be shown, as a trace that can be saved."""
        ...


class WholeTrace:
    """A source that is one trace: a file that was opened, or our own engine's log."""

    first_step = 0
    quiet_seconds = 0.0

    def __init__(self, trace: Trace, facts: SourceFacts) -> None:
        self.facts = facts
        self._trace = trace

    @property
    def last_step(self) -> int:
        """See TraceSource."""
        return self._trace.num_steps

    def at(self, step: int) -> CacheState:
        """See TraceSource."""
        return self._trace.at(step)

    def events_of(self, step: int) -> Sequence[Event]:
        """See TraceSource."""
        return self._trace.events_of(step)

    def per_second(self) -> Sequence[SecondStats]:
        """See TraceSource."""
        return per_second_of(self._trace)

    def trace(self) -> Trace:
        """See TraceSource."""
        return self._trace
