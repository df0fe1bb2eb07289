"""The engine that a whole room shares: everybody's prompts as one continuous batch, stepped by the presenter.

A run that has grown long is drained, then a new one takes over with the prompts that came meanwhile: what the server
and every browser remember of a run stays bounded, however long the workshop.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from engine.sampling_params import SamplingParams
from views.engine_session import EngineSession, Moment
from views.room.lateness import Lateness

BuildSession = Callable[[], EngineSession]
LONGEST_RUN = 1_500
"""Steps of a run after which no further prompt joins it."""
MOST_PROMPTS = 160
"""Prompts of a run after which no further one joins it."""
OVER = ("finished", "refused")


@dataclass(frozen=True)
class Prompt:
    owner: str
    text: str
    params: SamplingParams


class SharedEngine:
    """`build` makes a session of the room's settings; it is known once somebody has opened the room's page."""

    def __init__(self) -> None:
        self.pace: float | None = None
        """Seconds between steps; None while the presenter steps by hand."""
        self.lateness = Lateness()
        self._session: EngineSession | None = None
        self._build: BuildSession | None = None
        self._owners: dict[str, str] = {}
        self._queue: list[Prompt] = []
        self._lock = threading.RLock()

    @property
    def session(self) -> EngineSession | None:
        return self._session

    @property
    def num_held_back(self) -> int:
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

    def add(self, prompt: Prompt) -> None:
        """Queue a prompt, for this run or the next. Raises ValueError with a sentence when it is refused."""
        with self._lock:
            if self._session is None:
                raise ValueError("The room's engine is not open yet. Wait for its picture to appear.")
            if self._is_long or self._queue:
                self._queue.append(prompt)
            else:
                self._hand_over(prompt)

    def num_under_way(self, owner: str) -> int:
        """Prompts of this owner that have not finished."""
        return len(self._under_way_of(owner)) + Counter(prompt.owner for prompt in self._queue)[owner]

    def owner_of(self, request_id: str) -> str | None:
        return self._owners.get(request_id)

    def owners_under_way(self) -> dict[str, str]:
        """Whose each request is that has not finished, by its name."""
        moment = self._moment
        requests = {} if moment is None else moment.state.requests
        return {
            name: self._owners[name]
            for name, request in requests.items()
            if request.status not in OVER and name in self._owners
        }

    def abort(self, request_id: str) -> None:
        if self._session is not None and request_id in self._owners:
            self._session.abort(request_id)

    def abort_all_of(self, owner: str) -> None:
        """End what somebody who has gone had under way; the blocks come back."""
        with self._lock:
            self._queue = [prompt for prompt in self._queue if prompt.owner != owner]
            for request_id in self._under_way_of(owner):
                self.abort(request_id)

    def step(self, expected_step: int) -> None:
        """One step by hand. A click made on an older picture does nothing."""
        if self._session is not None:
            self._session.step(expected_step)
            self.renew_if_drained()

    def tick(self) -> bool:
        """One step of a run at a pace. Whether there was anything to do."""
        session = self._session
        return self.is_stepping and session is not None and session.step(session.moment.step)

    def renew_if_drained(self) -> None:
        """When a long run has nothing left to do: a new one, with the prompts that waited for it."""
        with self._lock:
            if self._session is not None and self._is_long and not self._session.moment.has_unfinished:
                self.renew()

    def renew(self) -> None:
        """A new run, built of the settings as they are now. What waited for it joins it."""
        with self._lock:
            if self._session is None or self._build is None:
                return
            self.close()
            self._session = self._build()
            waiting, self._queue = self._queue, []
            for prompt in waiting:
                self._hand_over(prompt)

    def begin_anew(self) -> None:
        """A new run without the prompts there were."""
        with self._lock:
            self._queue = []
            self.renew()

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

    def _hand_over(self, prompt: Prompt) -> None:
        assert self._session is not None
        request_id = self._session.add(prompt.text, prompt.params, as_chat=False)
        self._owners[request_id] = prompt.owner

    def _under_way_of(self, owner: str) -> list[str]:
        return [name for name, its_owner in self.owners_under_way().items() if its_owner == owner]
