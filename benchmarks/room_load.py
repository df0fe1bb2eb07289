"""Forty people in one room: do their clicks get answers in time, does the engine keep its pace, does memory stay flat?

Usage: python -m benchmarks.room_load [--clients 40] [--minutes 10] [--model tiny-random] [--pace 0.2] [--json FILE]

A server of its own, and for each client the sockets that a browser has: Streamlit's (spoken as the page's script does,
with its fragments once a second), the room's line, and the memory map's frames. The presenter runs the engine and
moves to another page twice a minute; those who follow go along. Everybody clicks at a person's pace: prompts into the
shared batch, predictions and buttons on a lesson.

On a machine that is busy with other things, `chrt -r 10` before the command gives server and clients their turn first;
`machine_load` and `server_cpus` say how busy it was, and how much of it the room needs.

A click is answered when its script has finished. Everybody uses values that are theirs alone, and looks each time
whether the page shows these and nobody else's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import websockets

from benchmarks.streamlit_client import Tab
from tests.helpers.app_server import ROOT, AppServer, running_app
from views.live.settings import PACES
from views.room.tick_latency import percentile

LESSON = "batch"
CLICKS = ("prompt", "control", "predict")
"""What one person does. To follow the presenter is a page load, and all who follow do it in the same moment."""
PAUSE = (4.0, 12.0)
"""Seconds between two clicks of one person."""
SECONDS_BETWEEN_SAMPLES = 10.0
SECONDS_BETWEEN_MOVES = 30.0
SPREAD = 0.4
"""Seconds over which those who follow ask for the new page, as assets/room/bar.js has it."""


@dataclass
class Measured:
    clicks: list[tuple[str, float]] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    fragments: list[float] = field(default_factory=list)
    resident: list[tuple[float, float]] = field(default_factory=list)
    num_frames: int = 0
    cpu_share: float = 0.0
    num_moves_followed: int = 0


class Person:
    """One attendee with their three sockets."""

    def __init__(self, url: str, number: int, code: str, measured: Measured) -> None:
        self.url, self.number, self.code, self.measured = url, number, code, measured
        self.random = random.Random(number)
        self.tab = Tab(url)
        self.one_at_a_time = asyncio.Lock()
        self.where = "room"
        self.stamp = ""
        self.own_block_size = number % 60 + 2
        self.num_prompts = 0

    async def live(self, until: float) -> None:
        async with self.tab:
            await self.measure("arrive", self.tab.open("room", f"room={self.code}"))
            self.tab.fill("room_code", self.code)
            self.tab.fill("room_name", f"Client {self.number}")
            await self.measure("join", self.tab.click("Join"))
            line = asyncio.create_task(self.hold_line())
            frames = asyncio.create_task(self.watch_frames())
            while time.monotonic() < until:
                await asyncio.sleep(self.random.uniform(*PAUSE))
                await self.do_something()
            for task in (line, frames):
                task.cancel()
            self.measured.fragments += self.tab.fragment_seconds

    async def do_something(self) -> None:
        async with self.one_at_a_time:
            if self.where == "room":
                await self.send_prompt()
            elif self.random.random() < 0.5:
                await self.set_block_size()
            else:
                await self.predict()

    async def send_prompt(self) -> None:
        self.num_prompts += 1
        self.tab.fill("room_prompt", f"person {self.number} asks {self.num_prompts}")
        self.tab.fill("room_max_tokens", self.random.randint(4, 12))
        await self.measure("prompt", self.tab.click("Send to the room"))
        self.check_own_requests()

    def check_own_requests(self) -> None:
        for refusal in re.findall(r'class="pv-notice problem"[^>]*><p>([^<]*)', self.tab.html):
            self.measured.refusals[re.sub(r"\d+", "N", refusal)] += 1
        for item in re.findall(r"<li data-request=.*?</li>", self.tab.html, re.DOTALL):
            if "<em>yours</em>" in item and f">person {self.number} asks " not in item:
                self.measured.foreign.append(f"{self.number} was shown as theirs: {item[:200]}")

    async def set_block_size(self) -> None:
        await self.measure("control", self.tab.enter(f"{LESSON}_block_size", self.own_block_size))
        if f"block_size={self.own_block_size}" not in self.tab.query.split("&"):
            self.measured.foreign.append(f"{self.number} chose {self.own_block_size}, its address has {self.tab.query}")

    async def predict(self) -> None:
        if not (questions := self.tab.keys("radio")):
            self.measured.unanswered.append(f"{self.number}: the lesson came without its question")
            return
        question = questions[0]
        await self.measure("predict", self.tab.enter(question, self.random.randrange(3)))
        if 'data-verdict="none"' in self.tab.html:
            self.measured.unanswered.append(f"{self.number}: no verdict")

    async def hold_line(self) -> None:
        """Follow the presenter, as assets/room/bar.js does."""
        identity = self.tab.component("room_bar")["identity"]
        async with websockets.connect(f"{self.url.replace('http', 'ws')}/api/room/{self.code}") as line:
            await line.send(json.dumps(identity))
            async for text in line:
                news = json.loads(text)
                if "people" in news:
                    self.measured.foreign.append(f"{self.number} was told about people: {news['people']}")
                if news["place"] is not None and news["stamp"] != self.stamp and self.number % 2:
                    self.stamp = news["stamp"]
                    await asyncio.sleep(self.random.uniform(0.0, SPREAD))
                    await self.go_to(news["place"]["path"], news["place"]["query"])

    async def go_to(self, page: str, query: str) -> None:
        if page == self.where or page not in ("room", LESSON):
            return
        query = f"{query}&room={self.code}&follow={self.stamp}"
        async with self.one_at_a_time:
            await self.measure("follow", self.tab.open(page, query))
            self.where = page
        self.measured.num_moves_followed += 1

    async def watch_frames(self) -> None:
        async with websockets.connect(
            f"{self.url.replace('http', 'ws')}/api/room/{self.code}/frames", max_size=None
        ) as socket:
            await socket.send(json.dumps({"trace_id": "", "have": 0}))
            async for text in socket:
                self.measured.num_frames += len(json.loads(text)["frames"])

    async def measure(self, kind: str, answer: Any) -> None:
        try:
            self.measured.clicks.append((kind, await answer))
        except TimeoutError:
            self.measured.unanswered.append(f"{self.number}: {kind}")


class Presenter:
    """Starts the room, runs its engine, walks between two pages, and reads what the room says of its engine."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.code = ""

    async def start(self, pace: float) -> str:
        await self.tab.open("room")
        await self.tab.click("Start a room")
        while not (found := re.search(r'data-room-code="(\w+)"', self.tab.html)):
            await asyncio.sleep(0.1)
        self.code = found[1]
        while "data-figure" not in self.tab.html:  # the model loads
            await asyncio.sleep(0.5)
            await self.tab.open("room", f"room={self.code}")
        self.identity = self.tab.component("room_bar")["identity"]
        self.pace = min(PACES, key=lambda name: abs(PACES[name] - pace))
        await self.tab.click("Run")
        return self.code

    async def walk(self, until: float) -> None:
        url = self.tab.url.replace("http", "ws")
        async with websockets.connect(f"{url}/api/room/{self.code}") as line:
            await line.send(json.dumps(self.identity))
            reader = asyncio.create_task(_drain(line))
            pages = ("room", LESSON)
            for number in range(10_000):
                await line.send(json.dumps({"place": {"path": pages[number % 2], "query": f"seed={number}"}}))
                await asyncio.sleep(min(SECONDS_BETWEEN_MOVES, max(until - time.monotonic(), 0.1)))
                if time.monotonic() >= until:
                    break
            reader.cancel()

    def health(self) -> dict[str, float]:
        """Of the panel on the presenter's page."""
        names = ("num_ticks", "late_p99", "late_max", "step_p50", "step_p95", "num_loads")
        found = {name: re.search(rf'data-figure="{name}">([\d.]+)', self.tab.html) for name in names}
        return {name: float(match[1]) for name, match in found.items() if match}


async def _drain(line: websockets.ClientConnection) -> None:
    async for _ in line:
        pass


async def sample_memory(server: AppServer, measured: Measured, began: float) -> None:
    while True:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        kilobytes = int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
        elapsed = time.monotonic() - began
        measured.resident.append((elapsed, kilobytes / 1024))
        print(f"  {elapsed:6.0f} s  {kilobytes / 1024:7.1f} MB  {len(measured.clicks):6} clicks", flush=True)
        await asyncio.sleep(SECONDS_BETWEEN_SAMPLES)


def cpu_seconds(server: AppServer) -> float:
    """What the server's process has computed so far, all its threads together."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(server: AppServer, options: argparse.Namespace) -> dict[str, Any]:
    measured = Measured()
    async with Tab(server.url) as tab:
        presenter = Presenter(tab)
        code = await presenter.start(options.pace)
        began, cpu_before = time.monotonic(), cpu_seconds(server)
        until = began + options.minutes * 60
        sampling = asyncio.create_task(sample_memory(server, measured, began))
        people = [Person(server.url, number, code, measured) for number in range(1, options.clients + 1)]
        await asyncio.gather(presenter.walk(until), *(person.live(until) for person in people))
        sampling.cancel()
        measured.cpu_share = (cpu_seconds(server) - cpu_before) / (time.monotonic() - began)
        await asyncio.sleep(1.5)
        return figures(measured, presenter.health(), options)


def figures(measured: Measured, health: dict[str, float], options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds and megabytes."""
    by_kind: dict[str, list[float]] = {}
    for kind, seconds in measured.clicks:
        by_kind.setdefault(kind, []).append(seconds * 1000)
    answers = {kind: _summary(times) for kind, times in sorted(by_kind.items())}
    clicks = [ms for kind in CLICKS for ms in by_kind.get(kind, [])]
    settled = [megabytes for seconds, megabytes in measured.resident if seconds > measured.resident[-1][0] / 4]
    return {
        "clients": options.clients,
        "minutes": options.minutes,
        "model": options.model,
        "answers_ms": answers | {"all clicks": _summary(clicks)},
        "fragments_ms": _summary([seconds * 1000 for seconds in measured.fragments]),
        "unanswered": measured.unanswered,
        "foreign": measured.foreign,
        "refusals": dict(measured.refusals),
        "frames_received": measured.num_frames,
        "moves_followed": measured.num_moves_followed,
        "engine": health,
        "server_cpus": round(measured.cpu_share, 2),
        "machine_load": [round(load, 1) for load in os.getloadavg()],
        "resident_mb": {"at_quarter": settled[0], "at_end": settled[-1], "most": max(settled)} if settled else {},
    }


def _summary(times: list[float]) -> dict[str, float]:
    percentiles = {f"p{p}": round(percentile(times, p), 1) for p in (50, 95, 99)}
    return {"count": len(times), **percentiles, "p100": round(max(times, default=0.0), 1)}


def print_table(found: dict[str, Any]) -> None:
    print(f"\n{'answers, ms':14} {'count':>7} {'p50':>8} {'p95':>8} {'p99':>8} {'worst':>8}")
    for kind, row in {**found["answers_ms"], "fragments": found["fragments_ms"]}.items():
        print(f"{kind:14} {row['count']:7} {row['p50']:8} {row['p95']:8} {row['p99']:8} {row['p100']:8}")
    for name in (
        "unanswered",
        "foreign",
        "refusals",
        "frames_received",
        "moves_followed",
        "engine",
        "server_cpus",
        "machine_load",
        "resident_mb",
    ):
        print(f"{name:16} {found[name]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--model", default="tiny-random")
    parser.add_argument("--pace", type=float, default=0.2, help="seconds between steps")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "server.log"
        with running_app(ROOT / "app.py", log_file, {"PAGED_KV_MODEL": options.model}) as server:
            try:
                found = asyncio.run(load(server, options))
            except Exception:
                print(server.log)
                raise
            found["tracebacks"] = server.log.count("Traceback")
    print_table(found)
    print(f"{'tracebacks':16} {found['tracebacks']}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
