"""A room's line and frames, spoken to directly: what a page of ours would never send."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
import websockets

from benchmarks.streamlit_client import Tab
from tests.helpers.app_server import AppServer
from tests.helpers.asynchronous import run_to_end
from views.room.codes import new_member_id, new_token

SECONDS = 30.0
SECONDS_OF_SILENCE = 0.5


class Room:
    """Started by a tab that speaks Streamlit's protocol."""

    def __init__(self, url: str, identity: dict[str, Any], code: str) -> None:
        self.url, self.identity, self.code = url, identity, code

    async def say(
        self, *messages: Any, origin: str | None = None, path: str = "", ends: bool = False
    ) -> tuple[list[Any], int | None]:
        """What the line answers to these messages until it closes, and its close code. One that is not to end is
        listened to until it is silent."""
        address = f"{self.url.replace('http', 'ws')}/api/room/{self.code}{path}"
        heard: list[Any] = []
        async with websockets.connect(address, origin=None if origin is None else websockets.Origin(origin)) as line:
            try:
                for message in messages:
                    await line.send(message if isinstance(message, str | bytes) else json.dumps(message))
                while True:
                    patience = SECONDS_OF_SILENCE if heard and not ends else SECONDS
                    heard.append(json.loads(await asyncio.wait_for(line.recv(), patience)))
            except websockets.ConnectionClosed:
                return heard, line.close_code
            except TimeoutError:
                return heard, None


async def started_room(url: str) -> Room:
    async with Tab(url) as tab:
        await tab.open("room")
        await tab.click("Start a room")
        deadline = asyncio.get_running_loop().time() + SECONDS
        while not (found := re.search(r'data-room-code="(\w+)"', tab.html)):
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.1)
        return Room(url, tab.component("room_bar")["identity"], found[1])


@pytest.fixture(scope="module")
def room(app_server: AppServer) -> Room:
    return run_to_end(started_room(app_server.url))


def attendee() -> dict[str, Any]:
    return {"member": new_member_id(), "name": "Eve"}


@pytest.mark.parametrize(
    "greeting", ["not json", "[]", "3", "[" * 4000, '{"member": "' + "x" * 9000 + '"}', b"\x00\xff"], ids=range(6)
)
@pytest.mark.every_case
def test_an_invalid_first_message_closes_the_websocket(room: Room, greeting: str | bytes) -> None:
    assert run_to_end(room.say(greeting, ends=True)) == ([], 1003)


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        ({}, "This tab is not in the room. Join again with the code."),
        ({"member": "<b>"}, "This tab is not in the room. Join again with the code."),
        ({"member": new_member_id(), "token": new_token()}, "Only the presenter can do this."),
        ({"member": new_member_id(), "token": {"a": 1}}, "Only the presenter can do this."),
    ],
)
@pytest.mark.every_case
def test_unknown_members_and_wrong_tokens_are_refused_and_learn_nothing(room: Room, identity: Any, why: str) -> None:
    assert run_to_end(room.say(identity, ends=True)) == ([{"state": "stranger", "why": why}], 1000)


def test_an_attendee_cannot_move_the_room_nor_receive_names(room: Room) -> None:
    [before], _ = run_to_end(room.say(attendee()))
    heard, code = run_to_end(room.say(attendee(), {"place": {"path": "batch", "query": ""}}, ends=True))
    [after], _ = run_to_end(room.say(attendee()))
    assert code == 1003
    assert (after["stamp"], after["place"]) == (before["stamp"], before["place"])
    assert all(set(news) == {"state", "place", "stamp", "is_stuck"} for news in (before, *heard, after))


@pytest.mark.parametrize("place", [{"path": "https://elsewhere.example"}, {"path": 3}, "batch", None, {}])
@pytest.mark.every_case
def test_the_presenter_moves_the_room_only_to_pages_of_the_app(room: Room, place: Any) -> None:
    [before, *_], code = run_to_end(room.say(room.identity, {"place": place}, ends=True))
    [after, *_], _ = run_to_end(room.say(attendee()))
    assert (code, after["stamp"]) == (1003, before["stamp"])


def test_a_move_omits_the_presenters_private_values(room: Room) -> None:
    place = {"path": "live_engine", "query": "engine=key-to-my-engine&prompt=abc"}
    run_to_end(room.say(room.identity, {"place": place}))
    [news, *_], _ = run_to_end(room.say(attendee()))
    assert news["place"] == {"path": "live_engine", "query": "prompt=abc"}


def test_another_origin_gets_neither_websocket_nor_frames(room: Room) -> None:
    for path, greeting in (("", attendee()), ("/frames", {"trace_id": "", "have": 0})):
        assert run_to_end(room.say(greeting, origin="http://elsewhere.example", path=path, ends=True)) == ([], 1008)


def test_an_unknown_room_and_a_token_of_another_room_are_refused(room: Room) -> None:
    nowhere = Room(room.url, room.identity, "00000000")
    for greeting in (attendee(), room.identity):
        assert run_to_end(nowhere.say(greeting, ends=True)) == ([{"state": "missing"}], 1000)
    assert run_to_end(nowhere.say({"trace_id": "", "have": 0}, path="/frames", ends=True)) == ([], 1008)


def test_the_presenters_tab_is_told_its_last_received_move(room: Room) -> None:
    """And keeps hearing it on its next line: a move with a later number was lost."""
    heard, _ = run_to_end(room.say(room.identity, {"place": {"path": "batch", "query": "requests=2"}, "number": 7}))
    assert heard[-1]["last_move"] == 7
    [again, *_], _ = run_to_end(room.say(room.identity))
    assert (again["last_move"], again["place"]) == (7, {"path": "batch", "query": "requests=2"})
