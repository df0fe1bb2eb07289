"""One browser tab's engine: its own pool and requests, stepped by clicks or by a thread, never by both at once.

No Streamlit here. Whoever changes the engine holds the lock; whoever looks takes the last published moment and never
waits for a step. The thread that runs holds the session weakly: a forgotten session is freed, and its thread ends.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.sampling_params import SamplingParams
from engine.state import CacheState
from views.deeds import Aborted, Added, Deed, Forked
from views.frames import FrameStream

if TYPE_CHECKING:
    from engine.engine import Engine  # it imports torch, and a page's frame is drawn before torch is loaded

STOP_SECONDS = 10.0
"""Patience for the step under way when a session closes."""


@dataclass(frozen=True)
class Moment:
    """What a page draws of one moment.

    `prompts` holds what was typed, by request_id; `texts` the streamed text of each sequence, by seq_id; `deeds`
    what was done so far. `problem` is the sentence of a step that failed. `goal`: the step to which a run is being
    repeated now, else None.
    """

    step: int
    state: CacheState
    prompts: dict[str, str]
    texts: dict[str, str]
    has_unfinished: bool
    deeds: tuple[Deed, ...] = ()
    is_running: bool = False
    problem: str = ""
    goal: int | None = None
    pending: tuple[Deed, ...] = ()


@dataclass(eq=False)
class EngineSession:
    """`name`: unguessable, so that only the tab that knows it can find the session again."""

    engine: Engine
    is_closed: bool = False
    name: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    frames: FrameStream = field(init=False)
    """What the memory map plays. It only grows, and may be read from any thread."""
    _published: Moment = field(init=False)
    _state: CacheState = field(default_factory=CacheState)
    _num_folded: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.frames = FrameStream(self.engine.trace, title="Memory of this tab's engine")
        self._publish(Moment(0, CacheState(), {}, {}, has_unfinished=False))

    @property
    def moment(self) -> Moment:
        """A picture of now, which later steps don't change."""
        return replace(self._published, is_running=self.is_running)

    @property
    def is_running(self) -> bool:
        """Whether a thread is stepping and has not been told to stop."""
        return self._thread is not None and self._thread.is_alive() and not self._stop.is_set()

    @property
    def is_unused(self) -> bool:
        """Whether no request was ever added."""
        return not self._published.prompts

    @contextmanager
    def between_steps(self) -> Iterator[Engine]:
        """The engine, held still: no step and no request comes while somebody looks at its memory."""
        with self._lock:
            yield self.engine

    # -- what a reader does --

    def add(self, prompt: str, params: SamplingParams, *, as_chat: bool) -> str:
        """Queue a prompt and return the request's id; `as_chat` wraps it in the model's chat template.

        Raises ValueError with a plain sentence when it is refused.
        """
        with self._lock:
            return self._do(Added(self.engine.trace.step, prompt, params, as_chat))

    def abort(self, request_id: str) -> None:
        """End a request; its blocks come back. One that has ended is left alone."""
        with self._lock:
            self._do(Aborted(self.engine.trace.step, request_id))

    def fork(self, request_id: str) -> str:
        """Start a new request from where another one is, with another seed. Returns its id.

        Raises ValueError with a plain sentence when it is refused.
        """
        with self._lock:
            seeds = [group.seed for group in self.engine.groups if group.request_id == request_id]
            seed = (seeds[0] if seeds else 0) + len(self.engine.groups)
            return self._do(Forked(self.engine.trace.step, request_id, seed))

    def step(self, expected_step: int) -> bool:
        """One step, if the engine still stands at `expected_step`: a click made on an older picture does nothing."""
        with self._lock:
            return self.engine.trace.num_steps == expected_step and self._advance()

    def run(self, seconds_between_steps: float) -> None:
        """Step in a thread until nothing is left to do, `stop`, or `close`. Does nothing while running."""
        with self._lock:
            self._start(seconds_between_steps)

    def repeat(self, deeds: Sequence[Deed], num_steps: int) -> None:
        """Do again, in a thread, what was done to an engine like this one, up to a step."""
        with self._lock:
            self._published = replace(self._published, goal=num_steps, pending=tuple(deeds))
            self._start(0.0)

    def stop(self) -> None:
        """No further step starts; one under way ends. Returns at once."""
        self._stop.set()

    def close(self) -> None:
        """Stop and wait for the step under way."""
        self.stop()
        self.is_closed = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    # -- inside; the caller holds the lock --

    def advance(self, stop: threading.Event) -> bool:
        """One step of a run, unless it was told to stop. Whether there may be another one."""
        with self._lock:
            if self._published.goal is None:
                return not stop.is_set() and self._advance()
            if not stop.is_set() and self._advance_to(self._published.goal):
                return True
            self._published = replace(self._published, goal=None, pending=())
            return False

    def _advance_to(self, goal: int) -> bool:
        """What is due after this step, and the next step. What was refused then is refused again."""
        step = self.engine.trace.step
        while (pending := self._published.pending) and pending[0].after_step <= step:
            self._published = replace(self._published, pending=pending[1:])
            with suppress(ValueError):
                self._do(pending[0])
        return step < goal and self._advance()

    def _start(self, seconds_between_steps: float) -> None:
        if self.is_running or self.is_closed:
            return
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_keep_stepping, args=(weakref.ref(self), self._stop, seconds_between_steps), daemon=True
        )
        self._thread.start()

    def _do(self, deed: Deed) -> str:
        """Perform and remember. A refused request is remembered too: it took a name."""
        now = self._published
        try:
            request_id = deed.perform(self.engine)
            if not isinstance(deed, Aborted):
                now = _with_texts_of(now, deed, request_id)
            return request_id
        finally:
            self._publish(replace(now, deeds=(*now.deeds, deed)))

    def _advance(self) -> bool:
        """One step if there is work and nothing went wrong before."""
        if self.is_closed or self._published.problem or not self.engine.has_unfinished_requests():
            return False
        try:
            outputs = self.engine.step()
        except Exception:
            number = self.engine.trace.step
            logging.getLogger(__name__).exception("step %d failed", number)
            problem = f"Step {number} failed, so this engine has stopped. Press Reset to start a new one."
            self._published = replace(self._published, problem=problem)
            return False
        news = {sequence.seq_id: sequence.text for output in outputs for sequence in output.outputs}
        self._publish(replace(self._published, texts={**self._published.texts, **news}))
        return True

    def _publish(self, now: Moment) -> None:
        """Let everybody see `now` with the engine's own state in it."""
        self.frames.update()
        events = self.engine.trace.events
        for event in events[self._num_folded :]:
            self._state.apply(event)
        self._num_folded = len(events)
        self._published = replace(
            now,
            step=self.engine.trace.num_steps,
            state=self._state.copy(),
            has_unfinished=self.engine.has_unfinished_requests(),
        )


def _with_texts_of(now: Moment, deed: Added | Forked, request_id: str) -> Moment:
    """A fork has its parent's prompt and begins with what it has said."""
    if isinstance(deed, Added):
        return replace(now, prompts={**now.prompts, request_id: deed.prompt})
    text = now.texts.get(deed.request_id, "")
    prompts = {**now.prompts, request_id: now.prompts.get(deed.request_id, "")}
    return replace(now, prompts=prompts, texts={**now.texts, request_id: text})


def _keep_stepping(session: weakref.ref[EngineSession], stop: threading.Event, seconds: float) -> None:
    """`seconds` from the begin of one step to the begin of the next; a step that takes longer is followed at once."""
    begin = time.monotonic()
    while _advance_if_alive(session, stop):
        stop.wait(max(0.0, begin + seconds - time.monotonic()))
        begin = time.monotonic()


def _advance_if_alive(session: weakref.ref[EngineSession], stop: threading.Event) -> bool:
    """In a function of its own, so that no strong reference outlives the step."""
    alive = session()
    return alive is not None and alive.advance(stop)
