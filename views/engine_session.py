"""One browser tab's engine: its own pool and requests, stepped by clicks or by a thread, never by both at once.

No Streamlit here. Every touch of the engine is under one lock, held for one step at most, so a page waits no longer
than that. The thread that runs holds the session weakly: a forgotten session is freed, and its thread ends.
"""

from __future__ import annotations

import logging
import threading
import weakref
from dataclasses import dataclass, field
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
    is_running: bool
    problem: str


@dataclass(eq=False)
class EngineSession:
    engine: SteppedEngine
    problem: str = ""
    is_closed: bool = False
    _prompts: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    frames: FrameStream = field(init=False)
    """What the memory map plays. It grows with every step, and may be read from any thread."""

    def __post_init__(self) -> None:
        self.frames = FrameStream(self.engine.trace, title="Memory of this tab's engine")
        self.frames.update()

    @property
    def is_running(self) -> bool:
        """Whether a thread is stepping and has not been told to stop."""
        return self._thread is not None and self._thread.is_alive() and not self._stop.is_set()

    @property
    def is_unused(self) -> bool:
        """Whether no request was ever added."""
        return not self._prompts

    def add(self, prompt: str, params: SamplingParams, *, as_chat: bool) -> str:
        """Queue a prompt and return the request's id; `as_chat` wraps it in the model's chat template.

        Raises ValueError with a plain sentence when it is refused.
        """
        with self._lock:
            try:
                request_id = self.engine.add_request(self._chat(prompt) if as_chat else prompt, params)
            finally:
                self.frames.update()  # a refusal is an event too
            self._prompts[request_id] = prompt
            return request_id

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
        """Stop, wait for the step under way, and let go of the pool."""
        self.stop()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        self.is_closed = True

    def moment(self) -> Moment:
        """A picture of now, which later steps don't change."""
        with self._lock:
            trace = self.engine.trace
            return Moment(
                step=trace.num_steps,
                state=self.engine.snapshot(),
                prompts=dict(self._prompts),
                texts=dict(self._texts),
                has_unfinished=self.engine.has_unfinished_requests(),
                is_running=self.is_running,
                problem=self.problem,
            )

    def _chat(self, prompt: str) -> list[int]:
        tokenizer = self.engine.tokenizer
        chat = tokenizer.render_chat([{"role": "user", "content": prompt}])
        return tokenizer.encode(chat, add_special_tokens=False)

    def _advance(self) -> bool:
        """One step if there is work and nothing went wrong before. Whether a step was made."""
        with self._lock:
            if self.is_closed or self.problem or not self.engine.has_unfinished_requests():
                return False
            try:
                outputs = self.engine.step()
            except Exception:
                number = self.engine.trace.num_steps
                logging.getLogger(__name__).exception("step %d failed", number)
                self.problem = f"Step {number} failed, so this engine has stopped. Press Reset to start a new one."
                return False
            self.frames.update()
            for output in outputs:
                self._texts.update({sequence.seq_id: sequence.text for sequence in output.outputs})
            return True


def _keep_stepping(session: weakref.ref[EngineSession], stop: threading.Event, seconds: float) -> None:
    while not stop.is_set() and _advance_if_alive(session):
        stop.wait(seconds)


def _advance_if_alive(session: weakref.ref[EngineSession]) -> bool:
    """In a function of its own, so that no strong reference outlives the step."""
    alive = session()
    return alive is not None and alive._advance()
