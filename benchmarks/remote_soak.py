"""A server that never stops: does the connector's memory stay flat, and does the page still answer?

    python -m benchmarks.remote_soak                      one million events, looked at in this process
    python -m benchmarks.remote_soak --events 100000
    python -m benchmarks.remote_soak --page               an hour's messages and then the page, in the app and a browser

A publisher in a process of its own sends conversations that share beginnings and evicts the oldest blocks, 5,000 events
a second: a server that computes 10,000 prompt tokens a second in blocks of 16 sends about 1,250. Meanwhile this process
does what the page does at every look, and measures how long it takes: the newest moment, one earlier moment, the report
with its radix tree, the map's frames and the tree's data.

With --page, an hour of 100 messages a second, 360,000 of them, is sent as fast as --compressed says while the page
follows; then 100 a second come for a minute each, once to a tab without a browser, once to one in Chromium. A rerun:
from the tab's request to the script's end, over its WebSocket. A pause: the longest time without a frame in each second
of the browser's, painting and everything else included.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from playwright.sync_api import sync_playwright

from benchmarks.streamlit_client import Tab
from engine.remote.addresses import events_address
from engine.remote.publisher import Publisher
from engine.remote.report import report_of
from engine.remote.server import RemoteServer, ServerAddresses
from engine.trace.event_base import Event as CacheEvent
from engine.trace.state import CacheState
from tests.helpers.app_server import ROOT, running_app
from tests.helpers.remote_page import RemotePage
from views.remote.picture import map_payload
from views.remote.radix_tree import radix_tree_data, shared_html
from views.remote.vocabulary import Vocabulary

BLOCK_SIZE, POOL_BLOCKS = 16, 4_000
EVENTS_A_MESSAGE = 8
EVENTS_A_SECOND = 5_000
POLL_SECONDS = 0.5
MESSAGES_OF_AN_HOUR, MESSAGES_A_SECOND = 360_000, 100.0
TARGET_MS = 200
FRAMES = """async (seconds) => {
    const times = [performance.now()], end = times[0] + seconds * 1000;
    while (times.at(-1) < end) times.push(await new Promise(requestAnimationFrame));
    return times;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Soak the connector with synthetic events.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=EVENTS_A_SECOND, help="events a second")
    parser.add_argument("--page", action="store_true", help="an hour's messages, and then the page itself")
    parser.add_argument("--messages", type=int, default=MESSAGES_OF_AN_HOUR, help="with --page: before it is measured")
    parser.add_argument("--compressed", type=float, default=1_500.0, help="with --page: of these, how many a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="with --page: of each measurement")
    options = parser.parse_args()
    if options.page:
        _report_page(options.messages, options.compressed, options.seconds)
        return
    found = soak(options.events, options.rate)
    print(f"{found.num_events:,} events in {found.seconds:.0f} s: {found.num_events / found.seconds:,.0f} a second")
    print(f"messages seen {found.num_messages:,}; the view is {'partial' if found.is_partial else 'whole'}")
    print("resident memory, MB, at tenths of the way: " + " ".join(f"{mb:.0f}" for mb in found.resident_mb))
    _say("a look, by the clock", found.look_ms)
    _say("a look, of its thread's CPU", found.look_cpu_ms)


def _say(what: str, milliseconds: Sequence[float]) -> None:
    ordered = sorted(milliseconds)
    p95 = ordered[int(len(ordered) * 0.95)]
    median, most = statistics.median(ordered), ordered[-1]
    print(f"{what}: median {median:.0f} ms, 95th of 100 {p95:.0f} ms, longest {most:.0f} ms, of {len(ordered)}")


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
    num_messages = -(-num_events // EVENTS_A_MESSAGE)
    with _publishing([(num_messages, rate / EVENTS_A_MESSAGE)]) as publisher:
        server = RemoteServer(ServerAddresses(events_address(publisher.endpoint), events_address(publisher.replay)))
        server.start()
        while not server.is_connected:
            time.sleep(0.05)
        publisher.go.set()
        try:
            return _follow(server, num_events)
        finally:
            server.stop()


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
    radix_tree_data(report.radix_tree, vocabulary, None)
    shared_html(report.radix_tree.shared, vocabulary)


def _newest_message(server: RemoteServer) -> int:
    events: list[CacheEvent] = list(server.events_of(server.last_step))
    return max((getattr(event, "sequence", -1) for event in events), default=-1)


def _resident_mb(pid: int | str = "self") -> float:
    fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    return int(fields[1]) * 4096 / 1e6


# ---- the page itself ----


def _report_page(num_messages: int, compressed: float, seconds: float) -> None:
    phases = [(num_messages, compressed), (10 * MESSAGES_OF_AN_HOUR, MESSAGES_A_SECOND)]
    with tempfile.TemporaryDirectory() as folder, _publishing(phases) as publisher:
        environment = {"PAGED_KV_MODEL": "tiny-random"}
        with running_app(ROOT / "app.py", Path(folder) / "server.log", environment) as app:
            query = urlencode({"events": publisher.endpoint, "replay": publisher.replay})
            hour, now, stored = asyncio.run(_reruns(app.url, query, publisher, seconds))
            minutes, took = num_messages / MESSAGES_A_SECOND / 60, publisher.seconds_of_first
            print(f"{num_messages:,} messages of {EVENTS_A_MESSAGE} events: {minutes:.0f} minutes in {took:.0f} s")
            print(f"the page says that {stored} blocks were stored so far")
            _say("a rerun of the page meanwhile", hour)
            _say(f"a rerun of the page at {MESSAGES_A_SECOND:.0f} messages a second (target {TARGET_MS} ms)", now)
            print(f"resident memory of the app: {_resident_mb(app.process.pid):.0f} MB")
            pauses = _pauses(app.url, publisher, seconds)
            _say("the longest pause of the browser in each second", pauses)


async def _reruns(url: str, query: str, publisher: _Publishing, seconds: float) -> tuple[list[float], list[float], str]:
    """Milliseconds of each rerun while the first messages come, and after them; the page's figure of stored blocks."""
    async with Tab(url) as tab:
        await tab.open("remote_server", query)
        tab.fill("events", publisher.endpoint)
        tab.fill("replay", publisher.replay)
        await tab.click("attach")
        await asyncio.sleep(2)
        publisher.go.set()
        while not publisher.is_first_over():
            await asyncio.sleep(POLL_SECONDS)
        hour, tab.fragment_seconds = tab.fragment_seconds, []
        await asyncio.sleep(2)
        tab.fragment_seconds.clear()
        await asyncio.sleep(seconds)
        stored = tab.html.partition('data-figure="report.num_stored">')[2].partition("<")[0]
        return [1000 * s for s in hour], [1000 * s for s in tab.fragment_seconds], stored


def _pauses(url: str, publisher: _Publishing, seconds: float) -> list[float]:
    """Milliseconds, one for each second in which the page was drawn anew."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        remote = RemotePage(chromium.new_page(viewport={"width": 1280, "height": 800}), url)
        remote.open(events=publisher.endpoint, replay=publisher.replay)
        remote.press("attach")
        remote.cards.first.wait_for(timeout=60_000)
        remote.page.wait_for_timeout(5_000)
        times = remote.page.evaluate(FRAMES, seconds)
        chromium.close()
    worst: dict[int, float] = {}
    for before, after in pairwise(times):
        second = int((after - times[0]) / 1000)
        worst[second] = max(worst.get(second, 0.0), after - before)
    return list(worst.values())


# ---- the publisher's process ----

Phases = Sequence[tuple[int, float]]
"""How many messages, and how many a second; one after another."""


@dataclass
class _Publishing:
    endpoint: str
    replay: str
    go: Event
    here: Any
    seconds_of_first: float = 0.0

    def is_first_over(self) -> bool:
        """Whether all messages of the first phase were sent."""
        if self.here.poll():
            self.seconds_of_first = self.here.recv()
        return self.seconds_of_first > 0


@contextlib.contextmanager
def _publishing(phases: Phases) -> Iterator[_Publishing]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    go = context.Event()
    process = context.Process(target=_publish, args=(there, go, phases), daemon=True)
    process.start()
    endpoint, replay = here.recv()
    try:
        yield _Publishing(endpoint, replay, go, here)
    finally:
        process.terminate()
        process.join()


def _publish(there: Any, go: Event, phases: Phases) -> None:
    publisher = Publisher("tcp://127.0.0.1:0", "tcp://127.0.0.1:0")
    there.send((publisher.endpoint, publisher.replay_endpoint))
    go.wait()
    time.sleep(0.5)  # a subscription needs a moment to arrive
    events = _events()
    for num_messages, rate in phases:
        started = time.monotonic()
        for number in range(1, num_messages + 1):
            batch = [next(events) for _event in range(EVENTS_A_MESSAGE)]
            publisher.publish(msgspec.msgpack.encode([time.time(), batch, 0]))
            time.sleep(max(started + number / rate - time.monotonic(), 0))
        there.send(time.monotonic() - started)
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
