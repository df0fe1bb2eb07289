"""One engine with its requests, stepped by clicks or by a thread, never by both at once.

No Streamlit here. Whoever changes the engine holds the lock; readers take the moment that was published last and never
wait for a step. The stepping thread holds the session weakly: a session that nobody holds is freed, and its thread
ends.
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

from engine.admission import check_prompt
from engine.i18n import _
from engine.sampling_params import SamplingParams
from engine.trace.state import CacheState
from views.memory_map.frames import FrameStream
from views.server.commands import AbortRequest, AddRequest, Command, ForkRequest

if TYPE_CHECKING:
    from engine.engine import Engine  # it imports torch, and a page's frame is drawn before torch is loaded

STOP_SECONDS = 10.0
"""How long `close` waits for the step under way."""


@dataclass(frozen=True)
class Moment:
    """An immutable snapshot of a session, which later steps do not change.

    prompts: what was typed, by request_id.
    texts: the generated text of each sequence, by seq_id.
    commands: what was executed so far.
    problem: the sentence of a step that failed, else empty.
    replay_until: the step up to which a run is being replayed now, else None; `pending`: commands it has not reached.
    """

    step: int
    state: CacheState
    prompts: dict[str, str]
    texts: dict[str, str]
    has_unfinished: bool
    commands: tuple[Command, ...] = ()
    is_running: bool = False
    problem: str = ""
    replay_until: int | None = None
    pending: tuple[Command, ...] = ()


@dataclass(eq=False)
class EngineSession:
    """`name`: random, so that only a tab that was told it can claim the session."""

    engine: Engine
    is_closed: bool = False
    name: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    frames: FrameStream = field(init=False)
    """What the memory map plays. Append-only; may be read from any thread."""
    _published: Moment = field(init=False)
    _state: CacheState = field(default_factory=CacheState)
    _num_folded: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.frames = FrameStream(self.engine.trace, title=_("Memory of this tab's engine"))
        self._publish(Moment(0, CacheState(), {}, {}, has_unfinished=False))

    @property
    def moment(self) -> Moment:
        """The latest snapshot."""
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
        """The engine with the lock held: no step and no request happens inside the `with` block."""
        with self._lock:
            yield self.engine

    # -- commands and stepping --

    def add(self, prompt: str, params: SamplingParams, *, as_chat: bool) -> str:
        """Queue a prompt and return the request's id; `as_chat` wraps it in the model's chat template.

        Raises ValueError with a plain sentence when it is refused.
        """
        with self._lock:
            return self._execute(AddRequest(self.engine.trace.step, prompt, params, as_chat))

    def check(self, prompt: str, params: SamplingParams) -> None:
        """Raises ValueError with a plain sentence when `add` would refuse this prompt as it is. Nothing is added."""
        with self._lock:
            token_ids = self.engine.tokenizer.encode(prompt)
            check_prompt(self.engine.config, self.engine.components.vocab_size, token_ids, params)

    def abort(self, request_id: str) -> None:
        """End a request and free its blocks. One that has ended is left alone."""
        with self._lock:
            self._execute(AbortRequest(self.engine.trace.step, request_id))

    def fork(self, request_id: str) -> str:
        """Start a new request from the state of another one, with another seed. Returns its id.

        Raises ValueError with a plain sentence when it is refused.
        """
        with self._lock:
            seeds = [group.seed for group in self.engine.groups if group.request_id == request_id]
            seed = (seeds[0] if seeds else 0) + len(self.engine.groups)
            return self._execute(ForkRequest(self.engine.trace.step, request_id, seed))

    def step(self, expected_step: int) -> bool:
        """One step, if the engine is still at `expected_step`: a click on an outdated page does nothing."""
        with self._lock:
            return self.engine.trace.num_steps == expected_step and self._advance()

    def run(self, seconds_between_steps: float) -> None:
        """Step in a thread until nothing is left to do, `stop`, or `close`. Does nothing while running."""
        with self._lock:
            self._start(seconds_between_steps)

    def replay(self, commands: Sequence[Command], num_steps: int) -> None:
        """Execute the commands of another run again, in a thread, and step up to `num_steps`."""
        with self._lock:
            self._published = replace(self._published, replay_until=num_steps, pending=tuple(commands))
            self._start(0.0)

    def stop(self) -> None:
        """Start no further step; the one under way ends. Returns at once."""
        self._stop.set()

    def pause(self) -> None:
        """Stop and wait for the step under way: a page that is drawn next offers the step after it."""
        self.stop()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def close(self) -> None:
        """Stop for good, and wait for the step under way."""
        self.is_closed = True
        self.pause()

    # -- internal; the caller holds the lock, but for `advance` --

    def advance(self, stop: threading.Event) -> bool:
        """One step of `run` or `replay`, called by its thread. Returns whether there may be another one."""
        with self._lock:
            if self._published.replay_until is None:
                return not stop.is_set() and self._advance()
            if not stop.is_set() and self._advance_to(self._published.replay_until):
                return True
            self._published = replace(self._published, replay_until=None, pending=())
            return False

    def _advance_to(self, last_step: int) -> bool:
        """Execute the pending commands of this step, then step. What was refused in the run is refused again."""
        step = self.engine.trace.step
        while (pending := self._published.pending) and pending[0].after_step <= step:
            self._published = replace(self._published, pending=pending[1:])
            with suppress(ValueError):
                self._execute(pending[0])
        return step < last_step and self._advance()

    def _start(self, seconds_between_steps: float) -> None:
        if self.is_running or self.is_closed:
            return
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_step_until_stopped, args=(weakref.ref(self), self._stop, seconds_between_steps), daemon=True
        )
        self._thread.start()

    def _execute(self, command: Command) -> str:
        """Execute and record a command; a refused request is recorded too, since it has used up a request id."""
        now = self._published
        try:
            request_id = command.execute(self.engine)
            if not isinstance(command, AbortRequest):
                now = _with_texts_of(now, command, request_id)
            return request_id
        finally:
            self._publish(replace(now, commands=(*now.commands, command)))

    def _advance(self) -> bool:
        """One step, if there is work and no step has failed. Returns whether it was made."""
        if self.is_closed or self._published.problem or not self.engine.has_unfinished_requests():
            return False
        try:
            outputs = self.engine.step()
        except Exception:
            number = self.engine.trace.step
            logging.getLogger(__name__).exception("step %d failed", number)
            problem = _("Step {number} failed, so this engine has stopped. Press Reset to start a new one.").format(
                number=number
            )
            self._published = replace(self._published, problem=problem)
            return False
        texts = {sequence.seq_id: sequence.text for output in outputs for sequence in output.outputs}
        self._publish(replace(self._published, texts={**self._published.texts, **texts}))
        return True

    def _publish(self, now: Moment) -> None:
        """Make `now`, with the engine's present state in it, the latest snapshot."""
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


def _with_texts_of(now: Moment, command: AddRequest | ForkRequest, request_id: str) -> Moment:
    """A fork starts with its parent's prompt and generated text."""
    if isinstance(command, AddRequest):
        return replace(now, prompts={**now.prompts, request_id: command.prompt})
    text = now.texts.get(command.request_id, "")
    prompts = {**now.prompts, request_id: now.prompts.get(command.request_id, "")}
    return replace(now, prompts=prompts, texts={**now.texts, request_id: text})


def _step_until_stopped(session: weakref.ref[EngineSession], stop: threading.Event, seconds: float) -> None:
    """`seconds`: from the start of one step to the start of the next; a longer step is followed at once."""
    started = time.monotonic()
    while _advance_if_alive(session, stop):
        stop.wait(max(0.0, started + seconds - time.monotonic()))
        started = time.monotonic()


def _advance_if_alive(session: weakref.ref[EngineSession], stop: threading.Event) -> bool:
    """A function of its own, so that no strong reference outlives the step."""
    alive = session()
    return alive is not None and alive.advance(stop)
