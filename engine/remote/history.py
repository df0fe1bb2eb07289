"""What was seen of a stream, within bounds: any moment of the newest part can be shown again.

The log is cut into chunks that each begin with a remembered state. A chunk is as long as its state is large, so
remembering costs no more than folding did; when the log is too long, the oldest chunk goes.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.i18n import _
from engine.remote.kv_events import MessageError, decode_payload
from engine.remote.server_clock import ServerClock
from engine.trace.cache_events import BlockStored, MessageReceived, MessagesMissed, ServerRestarted
from engine.trace.cache_view import CacheView
from engine.trace.event_base import Event
from engine.trace.per_second import PerSecondStats, SecondStats
from engine.trace.state import CacheState
from engine.trace.trace import Trace

MAX_EVENTS = 40_000
MAX_TOKENS = 1_000_000
SHORTEST_CHUNK = 512
"""Events in a chunk, at least."""


@dataclass
class _Chunk:
    """Steps `first` on: `steps[i]` are the events of step `first + i`, `base` the state before them."""

    first: int
    base: CacheState
    steps: list[tuple[Event, ...]] = field(default_factory=list)
    num_events: int = 0
    num_tokens: int = 0


class History:
    """One step a message. Written by one thread, read by any. Step 0 is before the first message."""

    def __init__(self, max_events: int = MAX_EVENTS, max_tokens: int = MAX_TOKENS) -> None:
        self._max_events, self._max_tokens = max_events, max_tokens
        self._lock = threading.Lock()
        self._state = CacheState()
        self._chunks: deque[_Chunk] = deque([_Chunk(1, CacheState())])
        self._per_second = PerSecondStats()
        self._last_came = time.monotonic()
        self.clock = ServerClock()
        self.last_step = 0
        self.num_skipped = 0
        """Events and messages that could not be read."""

    # -- writing --

    def add_message(self, sequence: int, payload: bytes, feed_rank: int | None = None) -> None:
        """One message. `feed_rank`: which of several endpoints it came from, for servers that name no rank."""
        with self._lock:
            try:
                batch = decode_payload(payload, self.last_step + 1)
            except MessageError:
                self.num_skipped += 1
                return
            self.num_skipped += batch.num_skipped
            if batch.timestamp is not None:
                self.clock.note_message(batch.timestamp, time.time())
            timestamp = batch.timestamp if batch.timestamp is not None else time.time()
            rank = batch.rank if batch.rank is not None else feed_rank
            events = batch.events
            if rank != batch.rank:
                events = tuple(replace(event, data_parallel_rank=rank) for event in events)  # type: ignore[call-arg]
            self._last_came = time.monotonic()
            self._append((*events, MessageReceived(self.last_step + 1, sequence, timestamp, rank)))
            self._per_second.add(timestamp, events, self._state.prefix_cache.num_copies)

    def add_gap(self, first: int, last: int, rank: int | None = None) -> None:
        """Messages `first` to `last` never came."""
        with self._lock:
            self._append((MessagesMissed(self.last_step + 1, first, last, rank),))

    def add_restart(self, rank: int | None = None) -> None:
        """The server began again, with an empty cache."""
        with self._lock:
            self._append((ServerRestarted(self.last_step + 1, rank),))

    # -- reading --

    @property
    def first_step(self) -> int:
        """The earliest step that can still be shown."""
        return self._chunks[0].first - 1

    def at(self, step: int) -> CacheState:
        """The state after `step`, a copy of your own. Raises IndexError for a step that is not, or no longer, here."""
        with self._lock:
            if step == self.last_step:
                return self._state.copy()
            if not self.first_step <= step < self.last_step:
                raise IndexError(
                    _("Step {step} is not among {first_step} to {last_step}.").format(
                        step=step, first_step=self.first_step, last_step=self.last_step
                    )
                )
            chunk = self._chunk_of(step)
            state = chunk.base.copy()
            for events in chunk.steps[: step - chunk.first + 1]:
                for event in events:
                    state.apply(event)
            return state

    def events_of(self, step: int) -> Sequence[Event]:
        """The events stamped with `step`. Raises IndexError as `at` does."""
        with self._lock:
            chunk = self._chunk_of(step)
            index = step - chunk.first
            return chunk.steps[index] if 0 <= index < len(chunk.steps) else ()

    def per_second(self) -> Sequence[SecondStats]:
        """Blocks stored and removed in each of the last seconds."""
        with self._lock:
            return self._per_second.seconds

    @property
    def quiet_seconds(self) -> float:
        """Since the last message came, by our clock."""
        return time.monotonic() - self._last_came

    def trace(self, info: dict[str, Any] | None = None) -> Trace:
        """Everything that can still be shown. Step 0 stores what was there before; a step here is `first_step` less."""
        with self._lock:
            first = self.first_step
            chunks = [(chunk.base, list(chunk.steps)) for chunk in self._chunks]
        trace = Trace(info=dict(info or {}))
        for event in _opening(chunks[0][0].prefix_cache):
            trace.append(event)
        for _base, steps in chunks:
            for events in steps:
                for event in events:
                    trace.append(replace(event, step=event.step - first))
        trace.step = trace.num_steps
        return trace

    # -- inside; the caller holds the lock --

    def _append(self, events: tuple[Event, ...]) -> None:
        self.last_step += 1
        for event in events:
            self._state.apply(event)
        chunk = self._chunks[-1]
        chunk.steps.append(events)
        chunk.num_events += len(events)
        chunk.num_tokens += sum(len(event.token_ids) for event in events if isinstance(event, BlockStored))
        if chunk.num_events >= max(SHORTEST_CHUNK, self._state.size):
            self._chunks.append(_Chunk(self.last_step + 1, self._state.copy()))
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._chunks) > 1 and (
            sum(chunk.num_events for chunk in self._chunks) > self._max_events
            or sum(chunk.num_tokens for chunk in self._chunks) > self._max_tokens
        ):
            self._chunks.popleft()

    def _chunk_of(self, step: int) -> _Chunk:
        chunks = list(self._chunks)
        return chunks[max(bisect_right([chunk.first for chunk in chunks], step) - 1, 0)]


def _opening(view: CacheView) -> list[Event]:
    """Step 0 of a trace that begins with these blocks stored."""
    events: list[Event] = []
    for rank, held in view.ranks.items():
        for block in held.blocks.values():
            for medium, group_idx in block.places:
                events.append(
                    BlockStored(
                        0, None, block.block_hash, block.parent_block_hash, block.token_ids,
                        block.block_size, None, None, rank, medium, group_idx,
                    )
                )  # fmt: skip
        if held.missed is not None:
            events.append(MessagesMissed(0, *held.missed, rank))
    return events
