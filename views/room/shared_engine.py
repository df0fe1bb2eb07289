"""The engine that a whole room shares: everybody's prompts as one continuous batch, stepped by the presenter.

A run that has grown long is drained, then a new one takes over with the prompts that came meanwhile: what the server
and every browser remember of a run stays bounded, however long the workshop.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from engine.i18n import _
from engine.sampling_params import SamplingParams
from views.room.tick_latency import TickLatency
from views.server.engine_session import EngineSession, Moment

BuildSession = Callable[[], EngineSession]
LONGEST_RUN = 1_500
"""Steps of a run after which no further prompt joins it."""
MOST_PROMPTS = 160
"""Prompts of a run after which no further one joins it."""
OVER = ("finished", "refused")


@dataclass(frozen=True)
class QueuedPrompt:
    """A prompt that waits for a run. `owner`: the member id of who sent it."""

    owner: str
    text: str
    params: SamplingParams


class SharedEngine:
    """`build` makes a session of the room's settings; it is known once somebody has opened the room's page."""

    def __init__(self) -> None:
        self.pace: float | None = None
        """Seconds between steps; None while the presenter steps by hand."""
        self.tick_latency = TickLatency()
        self.on_refused: Callable[[QueuedPrompt, str], None] = lambda prompt, why: None
        """Told of each prompt that waited for a run and is refused by it, with the sentence that says why."""
        self._session: EngineSession | None = None
        self._build: BuildSession | None = None
        self._owners: dict[str, str] = {}
        self._queue: list[QueuedPrompt] = []
        self._lock = threading.RLock()

    @property
    def session(self) -> EngineSession | None:
        """The engine's session; None before somebody has opened the room's page."""
        return self._session

    @property
    def num_queued(self) -> int:
        """Prompts that wait for the next run."""
        return len(self._queue)

    @property
    def is_stepping(self) -> bool:
        """Whether a run at a pace has something to do."""
        moment = self._moment
        return self.pace is not None and moment is not None and moment.has_unfinished and not moment.problem

    def open(self, build: BuildSession) -> EngineSession:
        """The session; the first to come makes it. Raises ValueError or MemoryError with a sentence."""
        with self._lock:
            self._build = build
            if self._session is None:
                self._session = build()
            return self._session

    def add(self, prompt: QueuedPrompt) -> None:
        """Queue a prompt, for this run or the next. Raises ValueError with a sentence when it is refused."""
        with self._lock:
            if self._session is None:
                raise ValueError(_("The room's engine has not started yet. Wait until its picture appears."))
            if self._is_long or self._queue:
                self._session.check(prompt.text, prompt.params)
                self._queue.append(prompt)
            else:
                self._submit(prompt)

    def num_unfinished(self, owner: str) -> int:
        """Prompts of this owner that have not finished."""
        return len(self._unfinished_of(owner)) + Counter(prompt.owner for prompt in self._queue)[owner]

    def owner_of(self, request_id: str) -> str | None:
        """The member id of who sent this request."""
        return self._owners.get(request_id)

    def owners_of_unfinished(self) -> dict[str, str]:
        """Whose each request is that has not finished, by its name."""
        moment = self._moment
        requests = {} if moment is None else moment.state.requests
        return {
            name: self._owners[name]
            for name, request in requests.items()
            if request.status not in OVER and name in self._owners
        }

    def abort(self, request_id: str) -> None:
        """End one request of this run; unknown ids are ignored."""
        if self._session is not None and request_id in self._owners:
            self._session.abort(request_id)

    def abort_requests_of(self, owner: str) -> None:
        """End what somebody who has gone had under way; the blocks come back."""
        with self._lock:
            self._queue = [prompt for prompt in self._queue if prompt.owner != owner]
            for request_id in self._unfinished_of(owner):
                self.abort(request_id)

    def step(self, expected_step: int) -> None:
        """One step by hand. A click made on an older picture does nothing."""
        if self._session is not None:
            self._session.step(expected_step)
            self.restart_if_drained()

    def tick(self) -> bool:
        """One step of a run at a pace. Whether there was anything to do."""
        session = self._session
        return self.is_stepping and session is not None and session.step(session.moment.step)

    def restart_if_drained(self) -> None:
        """When a long run has nothing left to do: a new one, with the prompts that waited for it."""
        with self._lock:
            if self._session is not None and self._is_long and not self._session.moment.has_unfinished:
                self.restart()

    def restart(self) -> None:
        """A new run with the settings as they are now. Queued prompts join it; one it refuses is reported alone."""
        with self._lock:
            if self._session is None or self._build is None:
                return
            self.close()
            self._session = self._build()
            waiting, self._queue = self._queue, []
            for prompt in waiting:
                try:
                    self._submit(prompt)
                except ValueError as refusal:
                    self.on_refused(prompt, str(refusal))

    def reset(self) -> None:
        """A new run without the prompts there were."""
        with self._lock:
            self._queue = []
            self.restart()

    def close(self) -> None:
        """Give the pool back."""
        with self._lock:
            if self._session is not None:
                self._session.close()
            self._session, self._owners = None, {}

    @property
    def _is_long(self) -> bool:
        moment = self._moment
        return moment is not None and (moment.step >= LONGEST_RUN or len(moment.prompts) >= MOST_PROMPTS)

    @property
    def _moment(self) -> Moment | None:
        return None if self._session is None else self._session.moment

    def _submit(self, prompt: QueuedPrompt) -> None:
        assert self._session is not None
        request_id = self._session.add(prompt.text, prompt.params, as_chat=False)
        self._owners[request_id] = prompt.owner

    def _unfinished_of(self, owner: str) -> list[str]:
        return [name for name, its_owner in self.owners_of_unfinished().items() if its_owner == owner]
