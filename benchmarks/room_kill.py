"""The server dies in the middle of a workshop and is started again: is everybody back where they were, and how soon?

Usage: python -m benchmarks.room_kill [--clients 40] [--model tiny-random] [--json FILE]

A presenter and those who follow, each with two sockets of a browser's tab: Streamlit's and the room's line. All are on
a lesson, at a frame and a block size that are not its defaults. The server is killed (SIGKILL), then started again at
the same port. Each tab does what its page does (assets/room/bar.js): it looks for the server, asks for its page with
the values that stand in its address, opens its line, and says who it is. It is back when its page shows these values
and the new server knows it as a member of the room. The presenter's token opens the room again.

Seconds count from the kill. `answers` is when the new server answered for the first time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import websockets

from benchmarks.streamlit_client import Tab
from tests.helpers.mortal_server import MortalServer
from views.room.tick_latency import percentile

PAGE, TITLE, REQUESTS, BLOCK_SIZE = "batch", "Memory across a batch", 3, 8
RETRY = (0.3, 0.7, 1.5, 3.0, 5.0)
"""Seconds between two looks for the server, as the page has them; each is spread by a third."""
SECONDS_OF_PATIENCE = 120.0


@dataclass(frozen=True)
class Seen:
    """What a tab shows, and who the server says it is."""

    heading: str
    requests: int
    block_size: int
    member: str
    name: str

    @property
    def is_the_lesson(self) -> bool:
        return (self.heading, self.requests, self.block_size) == (TITLE, REQUESTS, BLOCK_SIZE)


@dataclass
class Person:
    """before, after: what the tab showed until the server died, and once it was back. back_at: seconds, monotonic.

    num_here: attendees, as only the presenter hears.
    """

    url: str
    code: str
    identity: dict[str, Any]
    before: Seen | None = None
    after: Seen | None = None
    back_at: float = 0.0
    num_here: int = 0
    has_come: asyncio.Event = field(default_factory=asyncio.Event)
    may_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow_room(self) -> None:
        await self.be_there_until_it_dies()
        await self.come_back()

    async def be_there_until_it_dies(self) -> None:
        async with Tab(self.url) as tab, websockets.connect(self._line) as line:
            self.before = await self.look(tab, line)
            self.has_come.set()
            with contextlib.suppress(websockets.ConnectionClosed):
                async for _news in line:
                    pass

    async def come_back(self) -> None:
        for number in range(10_000):
            try:
                async with Tab(self.url) as tab, websockets.connect(self._line) as line:
                    self.after = await self.look(tab, line)
                    self.back_at = time.monotonic()
                    await self.stay(line)
                    return
            except (OSError, websockets.WebSocketException):
                await asyncio.sleep(RETRY[min(number, len(RETRY) - 1)] * random.uniform(0.7, 1.3))

    async def stay(self, line: websockets.ClientConnection) -> None:
        """Until all are back."""
        going = asyncio.create_task(self.may_go.wait())
        while not going.done():
            hearing = asyncio.create_task(line.recv())
            await asyncio.wait({going, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                self.num_here = json.loads(hearing.result()).get("people", {}).get("num_here", 0)
            else:
                hearing.cancel()

    async def look(self, tab: Tab, line: websockets.ClientConnection) -> Seen:
        """Raises ConnectionError while the room is not open."""
        await tab.open(PAGE, f"requests={REQUESTS}&block_size={BLOCK_SIZE}&room={self.code}")
        await line.send(json.dumps(self.identity))
        news = json.loads(await line.recv())
        if news["state"] != "open":
            raise ConnectionError(news["state"])
        await tab.tell("room_bar", "identity", {**self.identity, "code": self.code})
        known = tab.component("room_bar")["identity"] or {"member": "", "name": ""}
        position = tab.component("map_batch")["position"]
        block_size = tab.component("map_in_blocks")["payload"]["frames"][0]["layout"]["block_size"]
        return Seen(tab.headings[0], position, block_size, known["member"], known["name"])

    @property
    def _line(self) -> str:
        return f"{self.url.replace('http', 'ws')}/api/room/{self.code}"


async def everybody(url: str, num_clients: int) -> list[Person]:
    """The presenter first."""
    async with Tab(url) as tab:
        await tab.open("room")
        await tab.click("Start a room")
        while not (found := re.search(r'data-room-code="(\w+)"', tab.html)):
            await asyncio.sleep(0.1)
        presenter = Person(url, found[1], tab.component("room_bar")["identity"])
    return [presenter, *[await attendee(url, number, presenter.code) for number in range(1, num_clients)]]


async def attendee(url: str, number: int, code: str) -> Person:
    async with Tab(url) as tab:
        await tab.open("room", f"room={code}")
        tab.fill("room_code", code)
        tab.fill("room_name", f"Client {number}")
        await tab.click("Join")
        return Person(url, code, tab.component("room_bar")["identity"])


async def kill_and_return(server: MortalServer, num_clients: int) -> dict[str, Any]:
    people = await everybody(server.app.url, num_clients)
    tasks = [asyncio.create_task(person.follow_room()) for person in people]
    await asyncio.wait_for(asyncio.gather(*(person.has_come.wait() for person in people)), SECONDS_OF_PATIENCE)
    killed_at = time.monotonic()
    server.kill()
    await asyncio.to_thread(server.start)
    answered_at = time.monotonic()
    await until_all_are_here(people)
    for person in people:
        person.may_go.set()
    await asyncio.gather(*tasks)
    return figures(people, killed_at, answered_at)


async def until_all_are_here(people: list[Person]) -> None:
    """As the presenter's bar counts them; those who are missing then are in the figures."""
    deadline = time.monotonic() + SECONDS_OF_PATIENCE
    while people[0].num_here < len(people) - 1 and time.monotonic() < deadline:
        await asyncio.sleep(0.05)


def figures(people: list[Person], killed_at: float, answered_at: float) -> dict[str, Any]:
    """Seconds from the kill, and counts of people."""
    back = sorted(person.back_at - killed_at for person in people if person.after is not None)
    return {
        "clients": len(people),
        "on_the_lesson_before": sum(person.before is not None and person.before.is_the_lesson for person in people),
        "back_on_page_position_and_settings": sum(p.after is not None and p.after.is_the_lesson for p in people),
        "back_as_who_they_were": sum(p.after is not None and is_same_person(p, p.after) for p in people),
        "attendees_the_presenter_counts": people[0].num_here,
        "answers": round(answered_at - killed_at, 2),
        "first_back": round(back[0], 2),
        "half_back": round(percentile(back, 50), 2),
        "last_back": round(back[-1], 2),
    }


def is_same_person(person: Person, after: Seen) -> bool:
    return (after.member, after.name) == (person.identity["member"], person.identity["name"])


def measure(num_clients: int, model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = MortalServer(Path(folder), {"PAGED_KV_MODEL": model})
        try:
            found = asyncio.run(kill_and_return(server, num_clients))
            return found | {"tracebacks": server.app.log.count("Traceback")}
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--model", default="tiny-random")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    found = measure(options.clients, options.model)
    for name, value in found.items():
        print(f"{name:36} {value}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
