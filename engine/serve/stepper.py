"""The one thread that touches the engine: between two steps it does what others asked for.

    stepper.call(lambda engine: ...)      a Future, done before the next step
    stepper.add(prompt, params, listen)   a Future of the request's id; `listen` hears every output of it
    stepper.abort(request_id)             its blocks come back; nobody waits
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
from engine.event_base import Event
from engine.outputs import RequestOutput
from engine.sampling_params import SamplingParams

SECONDS_TO_STOP = 30.0
Result = TypeVar("Result")
Listener = Callable[[RequestOutput], None]
EventSink = Callable[[Engine, list[Event]], None]


class EngineStoppedError(RuntimeError):
    """A step failed, or the server is going down: no request is taken any more."""


class Stepper:
    """`sinks` hear, in the engine's thread, what the engine logged since the last time. The log is not kept."""

    def __init__(self, engine: Engine, sinks: list[EventSink]) -> None:
        self._engine = engine
        self._sinks = sinks
        self._inbox: queue.SimpleQueue[tuple[Future[Any], Callable[[Engine], Any]] | None] = queue.SimpleQueue()
        self._listeners: dict[str, Listener] = {}
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self.problem = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No further step; open requests end with an error."""
        self.problem = self.problem or "The server is going down."
        self._inbox.put(None)
        if self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)

    def call(self, action: Callable[[Engine], Result]) -> Future[Result]:
        """Do this between two steps. The future carries EngineStoppedError when there will be none."""
        future: Future[Result] = Future()
        self._inbox.put((future, action))
        if self.problem:
            self._refuse_waiting()
        return future

    def add(self, prompt: list[int], params: SamplingParams, listen: Listener) -> Future[str]:
        """Queue a prompt. The future carries RequestRefusedError when it can never run here."""

        request_id = uuid.uuid4().hex

        def action(engine: Engine) -> str:
            try:
                engine.add_request(prompt, params, request_id)
            except RequestRefusedError:
                engine.forget_request(request_id)
                raise
            self._listeners[request_id] = listen
            return request_id

        return self.call(action)

    def abort(self, request_id: str) -> None:
        """End a request whose client is gone. Finished ones are ignored."""

        def action(engine: Engine) -> None:
            if self._listeners.pop(request_id, None) is not None:
                engine.abort_request(request_id)
                engine.forget_request(request_id)

        self.call(action)

    # -- in the thread --

    def _run(self) -> None:
        try:
            while not self.problem:
                self._do_what_was_asked(wait=not self._engine.has_unfinished_requests())
                is_idle = bool(self.problem) or not self._engine.has_unfinished_requests()
                outputs = [] if is_idle else self._engine.step()
                self._tell_sinks()
                self._deliver(outputs)
        except Exception:
            logging.getLogger(__name__).exception("the engine failed")
            self.problem = "The engine failed at a step and has stopped; the server's log has the details."
        self._refuse_waiting()
        for request_id in list(self._listeners):
            self._listeners.pop(request_id)(RequestOutput(request_id, finished=True, error=self.problem))

    def _do_what_was_asked(self, *, wait: bool) -> None:
        """Everything in the inbox; when nothing else is to do, wait for the first of it."""
        while True:
            try:
                item = self._inbox.get(wait)
            except queue.Empty:
                return
            if item is None:
                return
            _settle(*item, self._engine)
            wait = False

    def _deliver(self, outputs: list[RequestOutput]) -> None:
        for output in outputs:
            listen = self._listeners.get(output.request_id)
            if listen is not None:
                listen(output)
            if output.finished:
                self._listeners.pop(output.request_id, None)
                self._engine.forget_request(output.request_id)

    def _tell_sinks(self) -> None:
        events = self._engine.trace.drain()
        for sink in self._sinks:
            sink(self._engine, events)

    def _refuse_waiting(self) -> None:
        while True:
            try:
                item = self._inbox.get_nowait()
            except queue.Empty:
                return
            if item is not None and not item[0].done():
                item[0].set_exception(EngineStoppedError(self.problem))


def _settle(future: Future[Any], action: Callable[[Engine], Any], engine: Engine) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = action(engine)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)
