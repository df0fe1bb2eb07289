"""Run a scenario in two engines and inject a fault into one: how the reply differs, what was read, which rule broke.

report = run_with_fault(make_components, config, prompt, SwapTableEntries())
report.rule, report.detail        the invariant that names the fault, and its words
report.wrong_reads                which sequence looked for which token in which block, and what it found
report.replies                    healthy and faulty, with the first token that differs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from course.sabotage.faults import Fault, Scenario
from engine.config import EngineConfig
from engine.engine import Engine
from engine.inspect.scratch import ComponentsFactory, Reply, first_difference, replies_of
from engine.inspect.watched_memory import WatchedMemory, WrongRead
from engine.kv_cache.invariants import InvariantError
from engine.trace.state import CacheState, ReplayError
from engine.trace.trace import Trace

MAX_STEPS = 64
"""A healthy engine needs about 16; a broken one may never finish."""


@dataclass(frozen=True, slots=True)
class ComparedReply:
    """One sequence in both engines. `first_difference`: the index of the first token that differs, None if none."""

    healthy: Reply
    faulty: Reply
    first_difference: int | None


@dataclass(frozen=True, slots=True)
class FaultInjectionReport:
    """`rule`, `detail`: the first broken invariant, found right after step `detected_after_step`; empty when none was.

    `failure`: the error that ended the broken engine, if one did.
    `last_drawable_step`: the log of a broken engine may contradict itself; up to this step `trace` can be replayed.
    """

    title: str
    inject_after: int
    replies: tuple[ComparedReply, ...]
    wrong_reads: tuple[WrongRead, ...]
    rule: str
    detail: str
    detected_after_step: int
    failure: str
    trace: Trace
    last_drawable_step: int

    @property
    def is_reply_wrong(self) -> bool:
        """Whether any reply differs from that of the healthy engine."""
        return any(reply.first_difference is not None for reply in self.replies)


def run_with_fault(
    make_components: ComponentsFactory, config: EngineConfig, prompt: Sequence[int], fault: Fault
) -> FaultInjectionReport:
    """The fault's scenario without it and with it. Raises ValueError when the prompt or the pool does not suit it."""
    scenario = fault.scenario(config, prompt)
    healthy, broken = _EngineRun(make_components, scenario), _EngineRun(make_components, scenario)
    healthy.run(None)
    broken.run(fault)
    pairs = zip(healthy.replies(), broken.replies(), strict=True)
    return FaultInjectionReport(
        title=fault.title,
        inject_after=scenario.inject_after,
        replies=tuple(ComparedReply(a, b, first_difference(a.token_ids, b.token_ids)) for a, b in pairs),
        wrong_reads=tuple(broken.watch.wrong_reads),
        rule=broken.rule,
        detail=broken.detail,
        detected_after_step=broken.detected_after_step,
        failure=broken.failure,
        trace=broken.engine.trace,
        last_drawable_step=last_drawable_step(broken.engine.trace),
    )


def last_drawable_step(trace: Trace) -> int:
    """The last step up to which the log can be replayed."""
    state = CacheState()
    for event in trace:
        try:
            state.apply(event)
        except ReplayError:
            return event.step - 1
    return trace.num_steps


@dataclass
class _EngineRun:
    """One engine through the scenario, its reads watched and its invariants checked after every step."""

    make_components: ComponentsFactory
    scenario: Scenario
    rule: str = ""
    detail: str = ""
    detected_after_step: int = 0
    failure: str = ""
    watch: WatchedMemory = field(init=False)
    engine: Engine = field(init=False)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch = WatchedMemory(self.make_components(self.scenario.config))
        self.engine = Engine(self.scenario.config, self.watch.components)

    def run(self, fault: Fault | None) -> None:
        for step in range(MAX_STEPS):
            if fault and step == self.scenario.inject_after:
                fault.inject(self.engine)
                self._check()
            self._add_requests(step)
            if not self._has_more_to_do(step) or not self._step():
                return
            self._check()

    def replies(self) -> tuple[Reply, ...]:
        return replies_of(self.engine, self.names)

    def _add_requests(self, step: int) -> None:
        due = (request for request in self.scenario.requests if request.after_step == step)
        self.names += [self.engine.add_request(request.prompt, request.params) for request in due]

    def _has_more_to_do(self, step: int) -> bool:
        return self.engine.has_unfinished_requests() or any(r.after_step > step for r in self.scenario.requests)

    def _step(self) -> bool:
        """One step. False when the engine died of it: a broken one may run into any error."""
        self.watch.step = self.engine.trace.step + 1
        try:
            self.engine.step()
        except Exception as error:
            self.failure = str(error)
        return not self.failure

    def _check(self) -> None:
        """Until the first broken rule; what comes after it may only be its consequence."""
        if self.rule:
            return
        try:
            self.engine.check_invariants()
        except InvariantError as error:
            self.rule, self.detail = error.rule, str(error)
            self.detected_after_step = self.engine.trace.step
