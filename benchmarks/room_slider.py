"""How long until everybody in a room sees the value to which the presenter moved a slider?

Usage: python -m benchmarks.room_slider [--json] [--clients 20] [--moves 20] [--model tiny-random]

The presenter and one attendee are tabs of a real browser, each with a profile of its own. The other attendees speak
the protocol of a tab (benchmarks/streamlit_client.py), each in a process of its own, and follow as assets/room/bar.js
does: they hear of the new place on the room's line, ask for the page with the values of its address, and have followed
when the script has finished and the picture shows the value.

Milliseconds count from the arrow key in the presenter's tab. `last` is the slowest client of a move.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import websockets
from playwright.sync_api import Browser, expect, sync_playwright

from benchmarks.room_kill import attendee
from benchmarks.streamlit_client import Tab
from benchmarks.tables import Row, progress, show
from course.batch.lesson import LESSON as BATCH
from tests.helpers.app_server import ROOT, running_app
from tests.helpers.room_page import PATIENCE, RoomPage
from views.room.tick_latency import percentile

TARGET_MS = 1000.0
SECONDS_OF_PATIENCE = 120.0
SECONDS_BETWEEN_MOVES = 1.0
"""As a person who speaks about each value, so that moves do not meet each other."""
LEAST, MOST = 1, 8
"""Requests of the lesson's batch between which the presenter goes up and down."""


def main() -> None:
    options = parse_options()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        with running_app(ROOT / "app.py", Path(folder) / "server.log", {"PAGED_KV_MODEL": options.model}) as server:
            rows = measure(chromium, server.url, options.clients, options.moves)
            num_tracebacks = server.log.count("Traceback")
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    show(
        rows, as_json=options.json, command=f"python -m benchmarks.room_slider {' '.join(sys.argv[1:])}",
        notes=[f"load of the machine {load}; {num_tracebacks} tracebacks in the server's log"],
    )  # fmt: skip


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--moves", type=int, default=20)
    parser.add_argument("--model", default="tiny-random")
    return parser.parse_args()


def measure(browser: Browser, url: str, num_clients: int, num_moves: int) -> list[Row]:
    """One row for the clients, one for the real tab."""
    presenter, follower = (
        RoomPage(browser.new_context(viewport={"width": 1280, "height": 900}).new_page(), url) for _ in range(2)
    )
    code = presenter.start()
    follower.join(code)
    processes = multiprocessing.get_context("spawn")
    arrivals: Any = processes.Queue()
    clients = [
        processes.Process(target=follow_in_process, args=(url, code, number, arrivals), daemon=True)
        for number in range(num_clients)
    ]
    for client in clients:
        client.start()
    try:
        presenter.turn_to(BATCH)
        follower.expect_page(BATCH)
        value = int(presenter.slider.input_value())
        arrivals_of(arrivals, value, num_clients)
        of_clients, of_tab, of_last = follow_moves(presenter, follower, arrivals, value, num_clients, num_moves)
    finally:
        for client in clients:
            client.terminate()
    return [row_of(f"{num_clients} clients", of_clients, of_last), row_of("real tab", of_tab, of_tab)]


def follow_moves(
    presenter: RoomPage, follower: RoomPage, arrivals: Any, value: int, num_clients: int, num_moves: int
) -> tuple[list[float], list[float], list[float]]:
    """Seconds from the key to each client, to the real tab, and to the last client of each move."""
    of_clients, of_tab, of_last, step = [], [], [], 1
    for number in range(num_moves):
        step = -1 if value >= MOST else 1 if value <= LEAST else step
        value += step
        time.sleep(SECONDS_BETWEEN_MOVES)
        pressed_at = time.time()
        presenter.press_in_map("ArrowRight" if step > 0 else "ArrowLeft")
        expect(follower.slider).to_have_value(str(value), timeout=PATIENCE)
        of_tab.append(time.time() - pressed_at)
        seconds = [at - pressed_at for at in arrivals_of(arrivals, value, num_clients)]
        of_clients += seconds
        of_last.append(max(seconds))
        progress(f"move {number + 1} of {num_moves}: the last client after {1e3 * of_last[-1]:.0f} ms")
    return of_clients, of_tab, of_last


def arrivals_of(arrivals: Any, value: int, num_clients: int) -> list[float]:
    """When each client saw the value. Raises queue.Empty when one does not."""
    seen: dict[int, float] = {}
    while len(seen) < num_clients:
        client, shown, at = arrivals.get(timeout=SECONDS_OF_PATIENCE)
        if shown == value:
            seen[client] = at
    return list(seen.values())


def follow_in_process(url: str, code: str, number: int, arrivals: Any) -> None:
    """The life of one client: reports (number, value of the picture, time) each time that it has followed."""
    asyncio.run(follow(url, code, number, arrivals))


async def follow(url: str, code: str, number: int, arrivals: Any) -> None:
    """Join the room and follow until the process ends."""
    identity = (await attendee(url, number, code)).identity
    stamp, path = "", ""
    async with Tab(url) as tab, websockets.connect(f"{url.replace('http', 'ws')}/api/room/{code}") as line:
        await line.send(json.dumps(identity))
        async for text in line:
            news = json.loads(text)
            place = news["place"]
            if place is None or news["stamp"] == stamp:
                continue
            stamp = news["stamp"]
            query = f"{place['query']}&room={code}&follow={stamp}"
            if place["path"] == path:
                await tab.step_through_history(query)
            else:
                await tab.open(place["path"], query)
                path = place["path"]
            if path == BATCH.url_path:
                arrivals.put((number, tab.component("map_batch")["position"], time.time()))


def row_of(who: str, seconds: list[float], of_last: list[float]) -> Row:
    milliseconds, last = ([1e3 * one for one in some] for some in (seconds, of_last))
    p95 = percentile(milliseconds, 95)
    return {
        "who": who,
        "arrivals": len(milliseconds),
        "p50 ms": round(percentile(milliseconds, 50)),
        "p95 ms": round(p95),
        "worst ms": round(max(milliseconds)),
        "last, median ms": round(percentile(last, 50)),
        "target p95 ms": round(TARGET_MS),
        "verdict": "met" if p95 <= TARGET_MS else "missed",
    }


if __name__ == "__main__":
    main()
