"""One browser tab's engine: its own pool and requests, stepped by clicks or by a thread, never by both at once.

No Streamlit here. Whoever changes the engine holds the lock; whoever looks takes the last published moment and never
waits for a step. The thread that runs holds the session weakly: a forgotten session is freed, and its thread ends.
"""

from __future__ import annotations

import logging
import threading
import weakref
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.config import EngineConfig
from engine.outputs import RequestOutput
from engine.sampling_params import SamplingParams
from engine.state import CacheState
from engine.tokenizer import Tokenizer
from engine.trace import Trace
from views.frames import FrameStream

STOP_SECONDS = 10.0
"""Patience for the step under way when a session closes."""


class SteppedEngine(Protocol):
    """What a session asks of an engine."""

    config: EngineConfig
    tokenizer: Tokenizer
    trace: Trace

    def add_request(self, prompt: str | list[int], params: SamplingParams) -> str: ...

    def step(self) -> list[RequestOutput]: ...

    def has_unfinished_requests(self) -> bool: ...

    def snapshot(self) -> CacheState: ...


@dataclass(frozen=True)
class Moment:
    """What a page draws of one moment.

    `prompts` holds what was typed, by request_id; `texts` the streamed text of each sequence, by seq_id.
    `problem` is the sentence of a step that failed.
    """

    step: int
    state: CacheState
    prompts: dict[str, str]
    texts: dict[str, str]
    has_unfinished: bool
    is_running: bool = False
    problem: str = ""


@dataclass(eq=False)
class EngineSession:
    engine: SteppedEngine
    is_closed: bool = False
    frames: FrameStream = field(init=False)
    """What the memory map plays. It only grows, and may be read from any thread."""
    _published: Moment = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
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

    def add(self, prompt: str, params: SamplingParams, *, as_chat: bool) -> str:
        """Queue a prompt and return the request's id; `as_chat` wraps it in the model's chat template.

        Raises ValueError with a plain sentence when it is refused.
        """
        with self._lock:
            now = self._published
            try:
                request_id = self.engine.add_request(self._chat(prompt) if as_chat else prompt, params)
                now = replace(now, prompts={**now.prompts, request_id: prompt})
                return request_id
            finally:
                self._publish(now)  # a refusal is an event too

    def step(self, expected_step: int) -> bool:
        """One step, if the engine still stands at `expected_step`: a click made on an older picture does nothing."""
        with self._lock:
            return self.engine.trace.num_steps == expected_step and self._advance()

    def run(self, seconds_between_steps: float) -> None:
        """Step in a thread until nothing is left to do, `stop`, or `close`. Does nothing while running."""
        with self._lock:
            if self.is_running or self.is_closed:
                return
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=_keep_stepping, args=(weakref.ref(self), self._stop, seconds_between_steps), daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """No further step starts; one under way ends. Returns at once."""
        self._stop.set()

    def close(self) -> None:
        """Stop and wait for the step under way."""
        self.stop()
        self.is_closed = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def advance(self, stop: threading.Event) -> bool:
        """One step of a run, unless it was told to stop. Whether a step was made."""
        with self._lock:
            return not stop.is_set() and self._advance()

    def _advance(self) -> bool:
        """One step if there is work and nothing went wrong before; the caller holds the lock."""
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
        self._published = replace(
            now,
            step=self.engine.trace.num_steps,
            state=self.engine.snapshot(),
            has_unfinished=self.engine.has_unfinished_requests(),
        )

    def _chat(self, prompt: str) -> list[int]:
        tokenizer = self.engine.tokenizer
        chat = tokenizer.render_chat([{"role": "user", "content": prompt}])
        return tokenizer.encode(chat, add_special_tokens=False)


def _keep_stepping(session: weakref.ref[EngineSession], stop: threading.Event, seconds: float) -> None:
    while _advance_if_alive(session, stop):
        stop.wait(seconds)


def _advance_if_alive(session: weakref.ref[EngineSession], stop: threading.Event) -> bool:
    """In a function of its own, so that no strong reference outlives the step."""
    alive = session()
    return alive is not None and alive.advance(stop)
