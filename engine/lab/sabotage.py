"""Break a scratch engine on purpose, beside a healthy one: how the reply goes wrong, what was read, which rule says so.

report = sabotage(make_parts, config, prompt, SwapTableEntries())
report.rule, report.detail        the invariant that names the fault, and its words
report.wrong_reads                which sequence looked for which token in which block, and what it found
report.replies                    healthy and sabotaged, with the first token that differs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.config import EngineConfig
from engine.engine import Engine
from engine.invariants import InvariantError
from engine.lab.saboteurs import Saboteur, Scene
from engine.lab.scratch import PartsMaker, Reply, first_difference, replies_of
from engine.lab.watched_memory import WatchedMemory, WrongRead
from engine.state import CacheState, ReplayError
from engine.trace import Trace

MAX_STEPS = 64
"""Healthy scenes end after about 16; a broken one may never end."""


@dataclass(frozen=True, slots=True)
class ComparedReply:
    """One sequence in both engines. `first_difference`: the index of the first token that differs, None if none."""

    healthy: Reply
    sabotaged: Reply
    first_difference: int | None


@dataclass(frozen=True, slots=True)
class SabotageReport:
    """`rule`, `detail`: the first broken invariant, found right after step `caught_after_step`; empty when none was.

    `failure`: what the engine died of, if it did. `last_drawable_step`: a log may contradict itself once its engine
    is broken; up to this step `trace` can be replayed.
    """

    title: str
    strike_after: int
    replies: tuple[ComparedReply, ...]
    wrong_reads: tuple[WrongRead, ...]
    rule: str
    detail: str
    caught_after_step: int
    failure: str
    healthy_trace: Trace
    trace: Trace
    last_drawable_step: int

    @property
    def is_reply_wrong(self) -> bool:
        return any(reply.first_difference is not None for reply in self.replies)


def sabotage(make_parts: PartsMaker, config: EngineConfig, prompt: Sequence[int], saboteur: Saboteur) -> SabotageReport:
    """Play the saboteur's scene twice. Raises ValueError when the prompt or the pool does not suit the scene."""
    scene = saboteur.scene(config, prompt)
    healthy, broken = _Life(make_parts, scene), _Life(make_parts, scene)
    healthy.live(None)
    broken.live(saboteur)
    pairs = zip(healthy.replies(), broken.replies(), strict=True)
    return SabotageReport(
        title=saboteur.title,
        strike_after=scene.strike_after,
        replies=tuple(ComparedReply(a, b, first_difference(a.token_ids, b.token_ids)) for a, b in pairs),
        wrong_reads=tuple(broken.watch.wrong_reads),
        rule=broken.rule,
        detail=broken.detail,
        caught_after_step=broken.caught_after_step,
        failure=broken.failure,
        healthy_trace=healthy.engine.trace,
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
class _Life:
    """One engine from the first visit to the end of the scene, its memory watched and its rules checked."""

    make_parts: PartsMaker
    scene: Scene
    rule: str = ""
    detail: str = ""
    caught_after_step: int = 0
    failure: str = ""
    watch: WatchedMemory = field(init=False)
    engine: Engine = field(init=False)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch = WatchedMemory(self.make_parts(self.scene.config))
        self.engine = Engine(self.scene.config, self.watch.parts)

    def live(self, saboteur: Saboteur | None) -> None:
        for step in range(MAX_STEPS):
            if saboteur and step == self.scene.strike_after:
                saboteur.strike(self.engine)
                self._check()
            self._receive_visits(step)
            if not self._has_more_to_do(step) or not self._step():
                return
            self._check()

    def replies(self) -> tuple[Reply, ...]:
        return replies_of(self.engine, self.names)

    def _receive_visits(self, step: int) -> None:
        self.names += [self.engine.add_request(v.prompt, v.params) for v in self.scene.visits if v.after_step == step]

    def _has_more_to_do(self, step: int) -> bool:
        return self.engine.has_unfinished_requests() or any(v.after_step > step for v in self.scene.visits)

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
            self.caught_after_step = self.engine.trace.step
