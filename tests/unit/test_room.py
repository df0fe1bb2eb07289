"""A room and its shared engine: who may do what, what is shared, what is freed and when."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from functools import partial

import pytest

from engine import Engine
from engine.loading import load_parts
from engine.usage import usage_of
from engine.weights import LoadedModel, load_model
from tests.helpers.waiting import until
from views.engine_session import EngineSession
from views.room import room as room_module
from views.room import shared_engine
from views.room.answers import QuestionName
from views.room.codes import code_of
from views.room.desk import Desk, NotPresenterError, desk
from views.room.limits import Limits, RefusedError
from views.room.place import Place
from views.room.room import NotInRoomError, Room
from views.room.rooms import MOST_ROOMS, Rooms
from views.room.settings import RoomSettings

TOKEN = "the presenter's token"


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny-random")


def build(room: Room, tiny: LoadedModel) -> EngineSession:
    config = room.settings.config("tiny-random")
    return EngineSession(Engine(config, load_parts(config, tiny)))


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
    desk(room, TOKEN).step(session_of(room).moment.step)


def used_blocks(room: Room) -> int:
    return usage_of(session_of(room).moment.state).num_used_blocks


# -- who may do what --


@pytest.mark.parametrize("wrong", ["", "the presenter's tokem", TOKEN + " ", "ы"])
def test_only_the_token_opens_the_desk(room: Room, wrong: str) -> None:
    assert isinstance(desk(room, TOKEN), Desk)
    with pytest.raises(NotPresenterError, match="Only the presenter can do this"):
        desk(room, wrong)


def test_names_are_given_where_none_was_chosen_and_only_the_desk_reads_them(room: Room) -> None:
    ada, guest, other = (room.join(name) for name in ("Ada", "", " \n"))
    for member in (ada, guest):
        room.came(member.id)
    room.set_stuck(guest.id, True)
    people = desk(room, TOKEN).people()
    assert (people.num_joined, people.names, people.stuck) == (3, ("Ada", "Guest 1"), ("Guest 1",))
    assert len({ada.id, guest.id, other.id}) == 3


def test_the_presenter_is_no_attendee(room: Room) -> None:
    member = room.join("Me")
    desk(room, TOKEN).be_presenter(member.id)
    room.came(member.id)
    room.answer(member.id, QuestionName("batch", 0), 1)
    the_desk = desk(room, TOKEN)
    assert (the_desk.people().num_joined, the_desk.counts(QuestionName("batch", 0), 2)) == (0, (0, 0))


def test_a_stranger_can_do_nothing(room: Room) -> None:
    for act in (
        lambda: room.add_prompt("x" * 22, "abc", 4),
        lambda: room.set_stuck("x" * 22, True),
        lambda: room.answer("x" * 22, QuestionName("batch", 0), 1),
        lambda: room.readmit("<x>", "Eve"),
    ):
        with pytest.raises(NotInRoomError):
            act()


def test_a_full_room_says_so(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "MOST_MEMBERS", 2)
    first = room.join("")
    room.join("")
    with pytest.raises(RefusedError, match="The room is full: 2 people are in it"):
        room.join("")
    assert room.readmit(first.id, "again") is first
    room.leave(first.id)
    room.join("")


def test_a_move_has_a_stamp_of_its_own_and_the_same_place_is_no_move(room: Room) -> None:
    the_desk = desk(room, TOKEN)
    the_desk.move_to(Place("batch", "requests=3"))
    first = room.stamp
    the_desk.move_to(Place("batch", "requests=3"))
    assert room.stamp == first
    the_desk.move_to(Place("batch", "requests=4"))
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
    assert desk(room, TOKEN).requests_under_way() == {"A": "Ada", "B": "Bob"}
    for _ in range(5):
        step(room)
    assert desk(room, TOKEN).requests_under_way() == {}


def test_a_room_with_few_blocks_sees_its_own_requests_preempted(tiny: LoadedModel) -> None:
    room = Room("CODE", TOKEN, RoomSettings(block_size=4, num_blocks=6))
    room.engine.open(partial(build, room, tiny))
    for name in ("Ada", "Bob"):
        room.add_prompt(room.join(name).id, "abcdefgh", 12)
    for _ in range(12):
        step(room)
    assert session_of(room).moment.state.counters.num_preemptions >= 1


def test_limits_hold_for_attendees_and_begin_again_with_reset(room: Room) -> None:
    room.limits = Limits(at_once=1, prompts=2, tokens=10)
    ada = room.join("Ada")
    room.add_prompt(ada.id, "abc", 4)
    with pytest.raises(RefusedError, match="1 of your prompts are under way"):
        room.add_prompt(ada.id, "abc", 4)
    for _ in range(4):
        step(room)
    with pytest.raises(RefusedError, match="you have 6 left: ask for 6 or fewer"):
        room.add_prompt(ada.id, "abc", 7)
    room.add_prompt(ada.id, "abc", 6)
    assert (room.spent(ada.id).prompts, room.spent(ada.id).tokens, room.spent(ada.id).under_way) == (2, 10, 1)
    desk(room, TOKEN).reset(RoomSettings(num_blocks=9))
    assert usage_of(session_of(room).moment.state).num_blocks == 9
    room.add_prompt(ada.id, "abc", 4)


def test_the_presenter_has_no_share_to_use_up(room: Room) -> None:
    room.limits = Limits(at_once=1, prompts=1, tokens=4)
    me = room.join("Me")
    desk(room, TOKEN).be_presenter(me.id)
    for _ in range(3):
        room.add_prompt(me.id, "abc", 4)
    assert len(session_of(room).moment.state.requests) == 3


def test_a_click_on_an_older_picture_makes_no_step(room: Room) -> None:
    room.add_prompt(room.join("").id, "abc", 4)
    the_desk = desk(room, TOKEN)
    the_desk.step(0)
    the_desk.step(0)
    assert session_of(room).moment.step == 1


def test_who_leaves_gives_their_blocks_back_and_the_others_go_on(room: Room) -> None:
    ada, bob = room.join("Ada"), room.join("Bob")
    room.add_prompt(ada.id, "abcdefgh", 40)
    room.add_prompt(bob.id, "xyzxyz", 40)
    step(room)
    before = used_blocks(room)
    room.leave(ada.id)
    state = session_of(room).moment.state
    assert (before, used_blocks(room)) == (4, 2)
    assert [request.status for request in state.requests.values()] == ["finished", "running"]


def test_who_stays_away_too_long_gives_their_blocks_back_and_may_return(room: Room) -> None:
    room.seconds_away = 60.0
    ada = room.join("Ada")
    room.came(ada.id)
    room.add_prompt(ada.id, "abcdefgh", 40)
    room.set_stuck(ada.id, True)
    step(room)
    room.look_after()
    assert used_blocks(room) == 2, "a tab that is here keeps them"
    room.went(ada.id)
    room.look_after()
    assert used_blocks(room) == 2, "a short loss of the network costs nothing"
    room.seconds_away = 0.0
    time.sleep(0.01)
    room.look_after()
    assert (used_blocks(room), ada.is_stuck) == (0, False)
    assert room.readmit(ada.id, "Ada") is ada
    room.add_prompt(ada.id, "abc", 4)


def test_a_long_run_is_drained_and_the_next_one_takes_what_waited(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_engine, "LONGEST_RUN", 3)
    ada, bob = room.join("Ada"), room.join("Bob")
    room.add_prompt(ada.id, "abc", 5)
    for _ in range(3):
        step(room)
    room.add_prompt(bob.id, "xyz", 5)
    first = session_of(room)
    assert (room.engine.num_held_back, list(first.moment.state.requests)) == (1, ["A"])
    assert room.spent(bob.id).under_way == 1
    for _ in range(2):
        step(room)
    second = session_of(room)
    assert second is not first
    assert first.is_closed
    assert (room.engine.num_held_back, second.moment.prompts) == (0, {"A": "xyz"})
    assert room.engine.owner_of("A") == bob.id


# -- the rooms of a server --


def test_a_room_runs_at_its_pace_and_what_is_added_later_runs_too(rooms: Rooms, tiny: LoadedModel) -> None:
    room = rooms.start(RoomSettings())
    room.engine.open(partial(build, room, tiny))
    ada = room.join("Ada")
    desk(room, room.token).run(0.0)
    for number in (1, 2):
        room.add_prompt(ada.id, "abc", 3)
        until(lambda: not session_of(room).moment.has_unfinished)
        assert len(session_of(room).moment.prompts) == number
    assert room.engine.lateness.num_ticks >= 6
    desk(room, room.token).pause()
    room.add_prompt(ada.id, "abc", 3)
    now = session_of(room).moment.step
    time.sleep(0.6)
    assert session_of(room).moment.step == now


def test_an_ended_room_frees_its_engine_and_is_remembered_as_ended(rooms: Rooms, tiny: LoadedModel) -> None:
    room = rooms.start(RoomSettings())
    session = room.engine.open(partial(build, room, tiny))
    desk(room, room.token).end()
    assert (session.is_closed, room.engine.session) == (True, None)
    until(lambda: rooms.find(room.code) is None)
    assert rooms.why_over(room.code) == "The presenter has ended the room."
    assert rooms.why_over("ANOTHER1") == ""


def test_an_idle_room_ends_by_itself(rooms: Rooms) -> None:
    room = rooms.start(RoomSettings())
    room.seconds_idle = 0.05
    until(lambda: rooms.find(room.code) is None)
    assert rooms.why_over(room.code).startswith("Nobody did anything here for a long time")


def test_the_token_opens_the_same_room_on_a_server_that_knows_nothing(rooms: Rooms) -> None:
    room = rooms.start(RoomSettings(num_blocks=20))
    assert code_of(room.token) == room.code
    afresh = Rooms()
    again = afresh.restore(room.token, room.settings, expected_code=room.code)
    assert (again.code, again.settings.num_blocks) == (room.code, 20)
    assert afresh.restore(room.token, RoomSettings(), expected_code=room.code) is again
    with pytest.raises(RefusedError, match="This token is not the one of this room"):
        afresh.restore("another token", room.settings, expected_code=room.code)
    afresh.close_all()


def test_there_are_not_more_rooms_than_a_machine_can_hold(rooms: Rooms) -> None:
    for _ in range(MOST_ROOMS):
        rooms.start(RoomSettings())
    with pytest.raises(RefusedError, match=f"This server has {MOST_ROOMS} rooms open, which is the most"):
        rooms.start(RoomSettings())


def test_a_fault_in_a_room_ends_that_room_with_a_sentence(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    room, other = rooms.start(RoomSettings()), rooms.start(RoomSettings())

    def fail() -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(room, "look_after", fail)
    until(lambda: rooms.find(room.code) is None)
    assert "fault in this program" in rooms.why_over(room.code)
    assert rooms.find(other.code) is other


def test_runs_that_are_over_are_freed(room: Room) -> None:
    engines = []
    for _ in range(3):
        engines.append(weakref.ref(session_of(room).engine))
        desk(room, TOKEN).reset(room.settings)
    gc.collect()
    assert [engine() for engine in engines] == [None, None, None]
