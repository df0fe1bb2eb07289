"""AsyncEngine: the one thread that runs the engine. Calls from other threads run between two steps.

async_engine.call(lambda engine: ...)         a Future, done before the next step
async_engine.add(prompt, params, on_output)   a Future of the request's id; `on_output` gets every output of it
async_engine.abort(request_id)                frees its blocks; does not wait
"""

from __future__ import annotations

import logging
import queue
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from engine.admission import RequestRefusedError
from engine.engine import Engine
from engine.outputs import RequestOutput
from engine.sampling_params import SamplingParams
from engine.trace.event_base import Event

SECONDS_TO_STOP = 30.0
Result = TypeVar("Result")
OutputCallback = Callable[[RequestOutput], None]
EventSink = Callable[[Engine, list[Event]], None]


class EngineStoppedError(RuntimeError):
    """A step failed, or the server is shutting down: no request is accepted any more."""


class AsyncEngine:
    """`sinks` are called in the engine's thread with the events since their last call. The log is not kept."""

    def __init__(self, engine: Engine, sinks: list[EventSink]) -> None:
        self._engine = engine
        self._sinks = sinks
        self._pending_calls: queue.SimpleQueue[tuple[Future[Any], Callable[[Engine], Any]] | None] = queue.SimpleQueue()
        self._callbacks: dict[str, OutputCallback] = {}
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self.problem = ""

    def start(self) -> None:
        """Start the engine's thread."""
        self._thread.start()

    def stop(self) -> None:
        """No further step; open requests end with an error."""
        self.problem = self.problem or "The server is going down."
        self._pending_calls.put(None)
        if self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)

    def call(self, action: Callable[[Engine], Result]) -> Future[Result]:
        """Run `action` between two steps. The future raises EngineStoppedError when the engine has stopped."""
        future: Future[Result] = Future()
        self._pending_calls.put((future, action))
        if self.problem:
            self._fail_pending_calls()
        return future

    def add(self, prompt: list[int], params: SamplingParams, on_output: OutputCallback) -> Future[str]:
        """Queue a prompt. The future raises RequestRefusedError when it can never run here."""

        request_id = uuid.uuid4().hex

        def action(engine: Engine) -> str:
            try:
                engine.add_request(prompt, params, request_id)
            except RequestRefusedError:
                engine.forget_request(request_id)
                raise
            self._callbacks[request_id] = on_output
            return request_id

        return self.call(action)

    def abort(self, request_id: str) -> None:
        """End a request whose client is gone. Finished ones are ignored."""

        def action(engine: Engine) -> None:
            if self._callbacks.pop(request_id, None) is not None:
                engine.abort_request(request_id)
                engine.forget_request(request_id)

        self.call(action)

    # -- in the thread --

    def _run(self) -> None:
        try:
            while not self.problem:
                self._run_pending_calls(wait=not self._engine.has_unfinished_requests())
                is_idle = bool(self.problem) or not self._engine.has_unfinished_requests()
                outputs = [] if is_idle else self._engine.step()
                self._drain_events()
                self._deliver(outputs)
        except Exception:
            logging.getLogger(__name__).exception("the engine failed")
            self.problem = "The engine failed at a step and has stopped; the server's log has the details."
        self._fail_pending_calls()
        for request_id in list(self._callbacks):
            self._callbacks.pop(request_id)(RequestOutput(request_id, finished=True, error=self.problem))

    def _run_pending_calls(self, *, wait: bool) -> None:
        """Run all pending calls. With `wait`, block until there is one."""
        while True:
            try:
                item = self._pending_calls.get(wait)
            except queue.Empty:
                return
            if item is None:
                return
            _resolve(*item, self._engine)
            wait = False

    def _deliver(self, outputs: list[RequestOutput]) -> None:
        for output in outputs:
            on_output = self._callbacks.get(output.request_id)
            if on_output is not None:
                on_output(output)
            if output.finished:
                self._callbacks.pop(output.request_id, None)
                self._engine.forget_request(output.request_id)

    def _drain_events(self) -> None:
        events = self._engine.trace.drain()
        for sink in self._sinks:
            sink(self._engine, events)

    def _fail_pending_calls(self) -> None:
        while True:
            try:
                item = self._pending_calls.get_nowait()
            except queue.Empty:
                return
            if item is not None and not item[0].done():
                item[0].set_exception(EngineStoppedError(self.problem))


def _resolve(future: Future[Any], action: Callable[[Engine], Any], engine: Engine) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = action(engine)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)
