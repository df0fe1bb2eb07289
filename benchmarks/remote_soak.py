"""A server that never stops: does the connector's memory stay flat, and does the page still answer?

    python -m benchmarks.remote_soak                      one million events
    python -m benchmarks.remote_soak --events 100000

A publisher in a process of its own sends conversations that share beginnings and evicts the oldest blocks, 5,000 events
a second: a server that computes 10,000 prompt tokens a second in blocks of 16 sends about 1,250. Meanwhile this process
does what the page does at every look, and measures how long it takes: the newest moment, one earlier moment, the report
with its radix tree, the map's frames and the tree as HTML.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import msgspec

from engine.remote.addresses import events_address
from engine.remote.publisher import Publisher
from engine.remote.report import report_of
from engine.remote.server import RemoteServer, ServerAddresses
from engine.trace.event_base import Event as CacheEvent
from engine.trace.state import CacheState
from views.remote.picture import map_payload
from views.remote.radix_tree import radix_tree_html, shared_html
from views.remote.vocabulary import Vocabulary

BLOCK_SIZE, POOL_BLOCKS = 16, 4_000
EVENTS_A_MESSAGE = 8
EVENTS_A_SECOND = 5_000
POLL_SECONDS = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description="Soak the connector with synthetic events.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=EVENTS_A_SECOND, help="events a second")
    options = parser.parse_args()
    found = soak(options.events, options.rate)
    print(f"{found.num_events:,} events in {found.seconds:.0f} s: {found.num_events / found.seconds:,.0f} a second")
    print(f"messages seen {found.num_messages:,}; the view is {'partial' if found.is_partial else 'whole'}")
    print("resident memory, MB, at tenths of the way: " + " ".join(f"{mb:.0f}" for mb in found.resident_mb))
    for name, looks in (("by the clock", sorted(found.look_ms)), ("of its thread's CPU", sorted(found.look_cpu_ms))):
        print(f"a look, {name}: median {statistics.median(looks):.0f} ms, 95th of 100 "
              f"{looks[int(len(looks) * 0.95)]:.0f} ms, longest {looks[-1]:.0f} ms, of {len(looks)} looks")  # fmt: skip


@dataclass
class Soaked:
    """What was measured. look_ms, look_cpu_ms: one a look, while events came; the second leaves waiting out."""

    num_events: int
    num_messages: int = 0
    is_partial: bool = False
    seconds: float = 0.0
    resident_mb: list[float] = field(default_factory=list)
    look_ms: list[float] = field(default_factory=list)
    look_cpu_ms: list[float] = field(default_factory=list)


def soak(num_events: int, rate: float) -> Soaked:
    """Publish, follow, look. Returns what was measured."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    go = context.Event()
    process = context.Process(target=_publish, args=(there, go, num_events, rate), daemon=True)
    process.start()
    endpoint, replay = here.recv()
    server = RemoteServer(ServerAddresses(events_address(endpoint), events_address(replay)))
    server.start()
    while not server.is_connected:
        time.sleep(0.05)
    go.set()
    try:
        return _follow(server, num_events)
    finally:
        server.stop()
        process.terminate()
        process.join()


def _follow(server: RemoteServer, num_events: int) -> Soaked:
    found = Soaked(num_events)
    last_message = (num_events - 1) // EVENTS_A_MESSAGE
    tenths = deque(last_message * tenth // 10 for tenth in range(1, 11))
    started = time.monotonic()
    while tenths:
        wall_ms, cpu_ms = _look(server)
        found.look_ms.append(wall_ms)
        found.look_cpu_ms.append(cpu_ms)
        while tenths and _newest_message(server) >= tenths[0]:
            found.resident_mb.append(_resident_mb())
            tenths.popleft()
        time.sleep(POLL_SECONDS)
    found.seconds = time.monotonic() - started
    state = server.at(server.last_step)
    found.num_messages = server.last_step
    found.is_partial = state.prefix_cache.partial_since is not None
    return found


def _look(server: RemoteServer) -> tuple[float, float]:
    """What the page does at a look, at the newest moment and at one in the middle, in turn: milliseconds of one look,
    by the clock and of this thread's CPU."""
    server.touch()
    started, started_cpu = time.perf_counter(), time.thread_time()
    _draw(server, server.at(server.last_step))
    _draw(server, server.at((server.first_step + server.last_step) // 2))
    return (time.perf_counter() - started) * 500, (time.thread_time() - started_cpu) * 500


def _draw(server: RemoteServer, state: CacheState) -> None:
    vocabulary = Vocabulary()
    report = report_of(server, state, 0)
    map_payload(state, 0, "", [event.describe() for event in server.events_of(state.step)], vocabulary)
    radix_tree_html(report.radix_tree, vocabulary, None)
    shared_html(report.radix_tree.shared, vocabulary)


def _newest_message(server: RemoteServer) -> int:
    events: list[CacheEvent] = list(server.events_of(server.last_step))
    return max((getattr(event, "sequence", -1) for event in events), default=-1)


def _resident_mb() -> float:
    fields = Path("/proc/self/statm").read_text("ascii").split()
    return int(fields[1]) * 4096 / 1e6


# ---- the publisher's process ----


def _publish(there: Any, go: Event, num_events: int, rate: float) -> None:
    publisher = Publisher("tcp://127.0.0.1:0", "tcp://127.0.0.1:0")
    there.send((publisher.endpoint, publisher.replay_endpoint))
    go.wait()
    time.sleep(0.5)  # a subscription needs a moment to arrive
    started = time.monotonic()
    batch: list[dict[str, Any]] = []
    for count, event in enumerate(_events(), 1):
        batch.append(event)
        if len(batch) == EVENTS_A_MESSAGE or count == num_events:
            publisher.publish(msgspec.msgpack.encode([time.time(), batch, 0]))
            batch = []
            time.sleep(max(started + count / rate - time.monotonic(), 0))
        if count == num_events:
            break
    time.sleep(3600)


def _events() -> Iterator[dict[str, Any]]:
    """Conversations of a few blocks behind one of 40 shared beginnings; the oldest block goes when the pool is full."""
    stored: deque[int] = deque()
    name = 0
    while True:
        beginning = name % 40
        parent = None
        for depth in range(6):
            name += 1
            block_hash = beginning * 10 + depth if depth < 2 else 10_000 + name
            tokens = [(block_hash * 31 + i) % 49_000 for i in range(BLOCK_SIZE)]
            yield {
                "type": "BlockStored", "block_hashes": [block_hash], "parent_block_hash": parent, "token_ids": tokens,
                "block_size": BLOCK_SIZE, "lora_id": None, "medium": "GPU", "group_idx": 0,
            }  # fmt: skip
            stored.append(block_hash)
            parent = block_hash
            if len(stored) > POOL_BLOCKS:
                yield {"type": "BlockRemoved", "block_hashes": [stored.popleft()], "medium": "GPU", "group_idx": 0}


if __name__ == "__main__":
    main()
