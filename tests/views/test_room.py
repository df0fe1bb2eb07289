"""A room and its shared engine: who may do what, what is shared, what is freed and when."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from engine import Engine
from engine.components import build_components
from engine.model.weights.load import LoadedModel, load_model
from engine.trace.usage import usage_of
from tests.helpers.waiting import PATIENCE, until
from views.room import room as room_module
from views.room import shared_engine
from views.room.answers import QuestionName
from views.room.codes import code_of
from views.room.place import Place
from views.room.presenter_api import NotPresenterError, PresenterApi, presenter_api
from views.room.quota import Quota, QuotaUsage, RefusedError
from views.room.room import NotInRoomError, Room
from views.room.rooms import MOST_ROOMS, Rooms
from views.room.settings import RoomSettings
from views.room.shared_engine import QueuedPrompt
from views.server.engine_session import EngineSession

TOKEN = "the presenter's token"


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny-random")


def build(room: Room, tiny: LoadedModel) -> EngineSession:
    config = room.settings.config("tiny-random")
    return EngineSession(Engine(config, build_components(config, tiny)))


@pytest.fixture
def room(tiny: LoadedModel) -> Room:
    """Open, with its engine."""
    room = Room("CODE", TOKEN)
    room.engine.open(partial(build, room, tiny))
    return room


@pytest.fixture
def rooms(tiny: LoadedModel) -> Iterator[Rooms]:
    rooms = Rooms()
    yield rooms
    rooms.close_all()


def session_of(room: Room) -> EngineSession:
    session = room.engine.session
    assert session is not None
    return session


def step(room: Room) -> None:
    presenter_api(room, TOKEN).step(session_of(room).moment.step)


def used_blocks(room: Room) -> int:
    return usage_of(session_of(room).moment.state).num_used_blocks


# -- who may do what --


@pytest.mark.parametrize("wrong", ["", "the presenter's tokem", TOKEN + " ", "ы"])
def test_only_the_token_opens_the_presenter_api(room: Room, wrong: str) -> None:
    assert isinstance(presenter_api(room, TOKEN), PresenterApi)
    with pytest.raises(NotPresenterError, match="Only the presenter can do this"):
        presenter_api(room, wrong)


def test_default_names_and_only_the_presenter_sees_names(room: Room) -> None:
    ada, guest, other = (room.join(name) for name in ("Ada", "", " \n"))
    for member in (ada, guest):
        room.connected(member.id)
    room.set_stuck(guest.id, True)
    people = presenter_api(room, TOKEN).people()
    assert (people.num_joined, people.names, people.stuck) == (3, ("Ada", "Guest 1"), ("Guest 1",))
    assert len({ada.id, guest.id, other.id}) == 3


def test_the_presenter_is_no_attendee(room: Room) -> None:
    member = room.join("Me")
    presenter_api(room, TOKEN).make_presenter(member.id)
    room.connected(member.id)
    room.answer(member.id, QuestionName("batch", 0), 1)
    presenter = presenter_api(room, TOKEN)
    assert (presenter.people().num_joined, presenter.counts(QuestionName("batch", 0), 2)) == (0, (0, 0))


def test_an_unknown_member_can_do_nothing(room: Room) -> None:
    for act in (
        lambda: room.add_prompt("x" * 22, "abc", 4),
        lambda: room.set_stuck("x" * 22, True),
        lambda: room.answer("x" * 22, QuestionName("batch", 0), 1),
        lambda: room.readmit("<x>", "Eve"),
    ):
        with pytest.raises(NotInRoomError):
            act()


def test_a_full_room_is_refused(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "MOST_MEMBERS", 2)
    first = room.join("")
    room.join("")
    with pytest.raises(RefusedError, match="The room is full: 2 people are in it"):
        room.join("")
    assert room.readmit(first.id, "again") is first
    room.leave(first.id)
    room.join("")


def test_a_move_has_a_new_stamp_and_the_same_place_is_no_move(room: Room) -> None:
    presenter = presenter_api(room, TOKEN)
    presenter.move_to(Place("batch", "requests=3"))
    first = room.stamp
    presenter.move_to(Place("batch", "requests=3"))
    assert room.stamp == first
    presenter.move_to(Place("batch", "requests=4"))
    assert room.stamp != first
    assert Room("CODE", TOKEN).stamp != Room("CODE", TOKEN).stamp


# -- the shared engine --


def test_prompts_of_two_people_run_in_one_batch(room: Room) -> None:
    ada, bob = room.join("Ada"), room.join("Bob")
    room.add_prompt(ada.id, "abcdefgh", 4)
    room.add_prompt(bob.id, "abcdefgh", 4)
    step(room)
    moment = session_of(room).moment
    assert [request.status for request in moment.state.requests.values()] == ["running", "running"]
    assert [room.engine.owner_of(name) for name in moment.state.requests] == [ada.id, bob.id]
    assert {name: moment.state.sequences[name].num_tokens for name in ("A", "B")} == {"A": 9, "B": 9}
    assert presenter_api(room, TOKEN).unfinished_requests() == {"A": "Ada", "B": "Bob"}
    for _ in range(5):
        step(room)
    assert presenter_api(room, TOKEN).unfinished_requests() == {}


def test_a_room_with_few_blocks_sees_its_own_requests_preempted(tiny: LoadedModel) -> None:
    room = Room("CODE", TOKEN, RoomSettings(block_size=4, num_blocks=6))
    room.engine.open(partial(build, room, tiny))
    for name in ("Ada", "Bob"):
        room.add_prompt(room.join(name).id, "abcdefgh", 12)
    for _ in range(12):
        step(room)
    assert session_of(room).moment.state.counters.num_preemptions >= 1


def test_limits_hold_for_attendees_and_begin_again_with_reset(room: Room) -> None:
    room.quota = Quota(at_once=1, prompts=2, tokens=10)
    ada = room.join("Ada")
    room.add_prompt(ada.id, "abc", 4)
    with pytest.raises(RefusedError, match="1 of your prompts is in progress"):
        room.add_prompt(ada.id, "abc", 4)
    for _ in range(4):
        step(room)
    with pytest.raises(RefusedError, match="you have 6 left: ask for 6 or fewer"):
        room.add_prompt(ada.id, "abc", 7)
    room.add_prompt(ada.id, "abc", 6)
    assert room.usage_of(ada.id) == QuotaUsage(prompts=2, tokens=10, num_unfinished=1)
    presenter_api(room, TOKEN).reset(RoomSettings(num_blocks=9))
    assert usage_of(session_of(room).moment.state).num_blocks == 9
    room.add_prompt(ada.id, "abc", 4)


def test_the_presenter_has_no_quota(room: Room) -> None:
    room.quota = Quota(at_once=1, prompts=1, tokens=4)
    me = room.join("Me")
    presenter_api(room, TOKEN).make_presenter(me.id)
    for _ in range(3):
        room.add_prompt(me.id, "abc", 4)
    assert len(session_of(room).moment.state.requests) == 3


def test_a_click_on_an_outdated_frame_makes_no_step(room: Room) -> None:
    room.add_prompt(room.join("").id, "abc", 4)
    presenter = presenter_api(room, TOKEN)
    presenter.step(0)
    presenter.step(0)
    assert session_of(room).moment.step == 1


def test_leaving_frees_blocks_and_others_continue(room: Room) -> None:
    ada, bob = room.join("Ada"), room.join("Bob")
    room.add_prompt(ada.id, "abcdefgh", 40)
    room.add_prompt(bob.id, "xyzxyz", 40)
    step(room)
    before = used_blocks(room)
    room.leave(ada.id)
    state = session_of(room).moment.state
    assert (before, used_blocks(room)) == (4, 2)
    assert [request.status for request in state.requests.values()] == ["finished", "running"]


def test_an_absent_member_loses_their_blocks_and_may_return(room: Room) -> None:
    room.seconds_away = 60.0
    ada = room.join("Ada")
    room.connected(ada.id)
    room.add_prompt(ada.id, "abcdefgh", 40)
    room.set_stuck(ada.id, True)
    step(room)
    room.housekeeping()
    assert used_blocks(room) == 2, "a tab that is here keeps them"
    room.disconnected(ada.id)
    room.housekeeping()
    assert used_blocks(room) == 2, "a short loss of the network costs nothing"
    room.seconds_away = 0.0
    time.sleep(0.01)
    room.housekeeping()
    assert (used_blocks(room), ada.is_stuck) == (0, False)
    assert room.readmit(ada.id, "Ada") is ada
    room.add_prompt(ada.id, "abc", 4)


def test_a_long_run_is_drained_and_queued_prompts_enter_the_next(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_engine, "LONGEST_RUN", 3)
    ada, bob = room.join("Ada"), room.join("Bob")
    room.add_prompt(ada.id, "abc", 5)
    for _ in range(3):
        step(room)
    room.add_prompt(bob.id, "xyz", 5)
    first = session_of(room)
    assert (room.engine.num_queued, list(first.moment.state.requests)) == (1, ["A"])
    assert room.usage_of(bob.id).num_unfinished == 1
    for _ in range(2):
        step(room)
    second = session_of(room)
    assert second is not first
    assert first.is_closed
    assert (room.engine.num_queued, second.moment.prompts) == (0, {"A": "xyz"})
    assert room.engine.owner_of("A") == bob.id


def a_run_that_takes_no_more(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request of five tokens, three steps made: who comes now waits for the next run."""
    monkeypatch.setattr(shared_engine, "LONGEST_RUN", 3)
    room.add_prompt(room.join("Ada").id, "abc", 5)
    for _ in range(3):
        step(room)


def test_a_prompt_that_could_never_run_is_refused_at_once_also_when_it_would_wait(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.settings = RoomSettings(block_size=4, num_blocks=4)
    room.engine.reset()
    a_run_that_takes_no_more(room, monkeypatch)
    bob = room.join("Bob")
    with pytest.raises(ValueError, match="It may need 5 blocks of 4; the pool has 4"):
        room.add_prompt(bob.id, "abcdefgh", 12)
    assert (room.engine.num_queued, room.usage_of(bob.id)) == (0, QuotaUsage())
    room.add_prompt(bob.id, "abcdefgh", 4)
    assert room.engine.num_queued == 1


def test_a_prompt_that_waited_and_is_too_large_for_the_next_run_is_refused_alone(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run_that_takes_no_more(room, monkeypatch)
    bob, cleo, dan = (room.join(name) for name in ("Bob", "Cleo", "Dan"))
    room.add_prompt(bob.id, "xyz", 5)
    room.add_prompt(cleo.id, "abcdefgh", 48)
    room.add_prompt(dan.id, "uvw", 5)
    room.settings = RoomSettings(block_size=4, num_blocks=4)  # as a Reset does just before it drops what waits
    for _ in range(2):
        step(room)
    assert not room.is_over
    assert room.engine.num_queued == 0
    assert list(session_of(room).moment.prompts.values()) == ["xyz", "uvw"]
    assert room.usage_of(cleo.id) == QuotaUsage()
    assert [bob.refusal, dan.refusal] == ["", ""]
    assert cleo.refusal == (
        "One of your prompts that waited for this run was refused. It may need 14 blocks of 4; the pool has 4. "
        "Ask for fewer tokens or samples, or make the pool larger."
    )
    room.add_prompt(cleo.id, "abc", 4)
    assert (cleo.refusal, room.usage_of(cleo.id).prompts) == ("", 1)
    step(room)
    running = [request.status for request in session_of(room).moment.state.requests.values()]
    assert running == ["running", "refused", "running", "running"]


def test_two_tabs_of_one_person_share_one_quota(room: Room) -> None:
    room.quota = Quota(at_once=1)
    ada = room.join("Ada")
    at_the_lock, in_the_engine, may_go_on = WatchedLock(), [], threading.Event()
    ada.quota_lock = at_the_lock  # type: ignore[assignment]
    add = room.engine.add

    def add_slowly(prompt: QueuedPrompt) -> None:
        in_the_engine.append(prompt)
        assert may_go_on.wait(PATIENCE)
        add(prompt)

    room.engine.add = add_slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as tabs:
        both = [tabs.submit(room.add_prompt, ada.id, "abc", 4) for _ in range(2)]
        try:
            until(lambda: len(in_the_engine) == 2 or at_the_lock.num_came == 2)
        finally:
            may_go_on.set()
        refusals = [str(refusal) for tab in both if (refusal := tab.exception()) is not None]
    assert refusals == ["1 of your prompts is in progress, the most allowed at once. Wait for one to finish."]
    assert (room.usage_of(ada.id), len(in_the_engine)) == (QuotaUsage(prompts=1, tokens=4, num_unfinished=1), 1)


class WatchedLock:
    """Counts who came to it, also those who wait still."""

    def __init__(self) -> None:
        self.num_came = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.num_came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


# -- the rooms of a server --


def test_a_room_runs_at_its_pace_and_what_is_added_later_runs_too(rooms: Rooms, tiny: LoadedModel) -> None:
    room = rooms.start(RoomSettings())
    room.engine.open(partial(build, room, tiny))
    ada = room.join("Ada")
    presenter_api(room, room.token).run(0.0)
    for number in (1, 2):
        room.add_prompt(ada.id, "abc", 3)
        until(lambda: not session_of(room).moment.has_unfinished)
        assert len(session_of(room).moment.prompts) == number
    assert room.engine.tick_latency.num_ticks >= 6
    presenter_api(room, room.token).pause()
    room.add_prompt(ada.id, "abc", 3)
    now = session_of(room).moment.step
    time.sleep(0.6)
    assert session_of(room).moment.step == now


def test_an_ended_room_frees_its_engine_and_is_reported_as_ended(rooms: Rooms, tiny: LoadedModel) -> None:
    room = rooms.start(RoomSettings())
    session = room.engine.open(partial(build, room, tiny))
    presenter_api(room, room.token).end()
    assert (session.is_closed, room.engine.session) == (True, None)
    until(lambda: rooms.find(room.code) is None)
    assert rooms.end_reason(room.code) == "The presenter has ended the room."
    assert rooms.end_reason("ANOTHER1") == ""


def test_an_idle_room_ends_by_itself(rooms: Rooms) -> None:
    room = rooms.start(RoomSettings())
    room.seconds_idle = 0.05
    until(lambda: rooms.find(room.code) is None)
    assert rooms.end_reason(room.code).startswith("The room was idle for too long")


def test_the_token_opens_the_same_room_on_a_new_server(rooms: Rooms) -> None:
    room = rooms.start(RoomSettings(num_blocks=20))
    assert code_of(room.token) == room.code
    afresh = Rooms()
    again = afresh.restore(room.token, room.settings, expected_code=room.code)
    assert (again.code, again.settings.num_blocks) == (room.code, 20)
    assert afresh.restore(room.token, RoomSettings(), expected_code=room.code) is again
    with pytest.raises(RefusedError, match="This is not the token of this room"):
        afresh.restore("another token", room.settings, expected_code=room.code)
    afresh.close_all()


def test_the_number_of_rooms_is_limited(rooms: Rooms) -> None:
    for _ in range(MOST_ROOMS):
        rooms.start(RoomSettings())
    with pytest.raises(RefusedError, match=f"This server has {MOST_ROOMS} rooms open, the most it allows"):
        rooms.start(RoomSettings())


def test_an_exception_in_a_room_ends_that_room_with_a_sentence(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    room, other = rooms.start(RoomSettings()), rooms.start(RoomSettings())

    def fail() -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(room, "housekeeping", fail)
    until(lambda: rooms.find(room.code) is None)
    assert "error in this app" in rooms.end_reason(room.code)
    assert rooms.find(other.code) is other


def test_runs_that_are_over_are_freed(room: Room) -> None:
    engines = []
    for _ in range(3):
        engines.append(weakref.ref(session_of(room).engine))
        presenter_api(room, TOKEN).reset(room.settings)
    gc.collect()
    assert [engine() for engine in engines] == [None, None, None]
