"""The Room page without a browser: ways in, what an attendee's script is given, forged tokens, refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import all_html, figure, sentences
from tests.helpers.waiting import until
from views.room import tab
from views.room.presenter_api import NotPresenterError
from views.room.room import Room
from views.room.rooms import rooms
from views.room.tab import RoomTab

ROOM = "pages/room.py"


@pytest.fixture(autouse=True)
def rooms_end_with_the_test() -> Iterator[None]:
    yield
    rooms().close_all()


def start(open_page: OpenPage) -> tuple[AppTest, Room]:
    app = open_page(ROOM)
    app = until_loaded(button(app, "Start a room").click().run())
    [code] = re.findall(r'data-room-code="(\w+)"', all_html(app))
    room = rooms().find(code)
    assert room is not None
    return app, room


def join(open_page: OpenPage, code: str, name: str = "") -> AppTest:
    app = open_page(ROOM, room=code)
    app.text_input(key="room_name").set_value(name)
    return button(app, "Join").click().run()


def button(app: AppTest, label: str) -> Any:
    [found] = [each for each in app.button if each.label == label]
    return found


def labels(app: AppTest) -> list[str]:
    return [each.label for each in app.button]


def send(app: AppTest, prompt: str) -> AppTest:
    app.text_area(key="room_prompt").set_value(prompt)
    return button(app, "Send to the room").click().run()


def tab_of(app: AppTest) -> RoomTab:
    tab: RoomTab = app.session_state["room_tab"]
    return tab


def test_an_unknown_room_code_is_reported(open_page: OpenPage) -> None:
    app = open_page(ROOM)
    app.text_input(key="room_code").set_value("ABCD-EFGH")
    button(app, "Join").click().run()
    assert sentences(app) == [
        "There is no room with this code on this server. Ask the presenter for the code on their screen."
    ]


def test_a_prompt_or_a_name_that_is_too_long_is_refused_with_its_limit_and_stays(open_page: OpenPage) -> None:
    _presenter, room = start(open_page)
    app = join(open_page, room.code, "N" * 25)
    assert sentences(app) == ["Your name has 25 characters; the limit is 24. Shorten it."]
    app = send(join(open_page, room.code, "Ada"), "y" * 310)
    refused = "Your prompt has 310 characters; the limit is 300. Shorten it by 10 characters and send it again."
    assert refused in sentences(app)
    assert app.text_area(key="room_prompt").value == "y" * 310
    app = send(app, "y" * 30)
    assert app.text_area(key="room_prompt").value == ""
    assert list(room.engine.session.moment.prompts.values()) == ["y" * 30]  # type: ignore[union-attr]


def test_only_the_presenters_script_receives_the_token(open_page: OpenPage) -> None:
    presenter, room = start(open_page)
    attendee = join(open_page, room.code, "Ada")
    assert list(presenter.code) == []
    presenter.toggle(key="room_token_shown").set_value(True).run()
    assert [code.value for code in presenter.code] == [room.token]
    assert tab_of(presenter).identity(room)["token"] == room.token
    assert list(attendee.code) == []
    assert set(tab_of(attendee).identity(room)) == {"member", "name"}
    given = all_html(attendee) + "".join(element.proto.json for element in attendee.get("bidi_component"))
    assert room.code in given
    assert room.token not in given
    assert "Names (only you can see them)" in [expander.label for expander in presenter.expander]
    assert [expander.label for expander in attendee.expander] == []
    assert labels(attendee) == ["Send to the room", "Leave the room"]


def test_a_forged_token_opens_nothing(open_page: OpenPage) -> None:
    _, room = start(open_page)
    member = room.join("Eve")
    with pytest.raises(NotPresenterError):
        _ = RoomTab(room.code, member.id, "x" * 32).presenter_api
    assert tab.tab_from({"code": room.code, "member": member.id, "token": "x" * 32}) is None
    assert tab.tab_from({"code": room.code, "member": "x" * 22}) is None
    assert tab.tab_from({"code": "NOROOM00", "member": member.id}) is None
    assert tab.tab_from({"code": room.code, "member": member.id}) == RoomTab(room.code, member.id)


def test_prompts_go_into_the_one_engine_and_a_refusal_is_one_sentence(open_page: OpenPage) -> None:
    presenter, room = start(open_page)
    attendee = send(join(open_page, room.code), "abc")
    presenter.button(key="room_step").click().run()
    attendee.run()
    assert (figure(attendee, "step"), figure(presenter, "step")) == ("1", "1")
    assert '<li data-request="A" data-status="running">' in all_html(attendee)
    for _ in range(2):
        send(attendee, "abc")
    assert "2 of your prompts are in progress, the most allowed at once. Wait for one to finish." in sentences(attendee)


def test_a_queued_prompt_that_is_refused_is_reported(open_page: OpenPage) -> None:
    _, room = start(open_page)
    attendee, other = join(open_page, room.code), join(open_page, room.code)
    room.member(tab_of(attendee).member).refusal = "One of your prompts that waited for this run was refused. Why."
    assert "One of your prompts that waited for this run was refused. Why." in sentences(attendee.run())
    assert not any("refused" in sentence for sentence in sentences(other.run()))


def test_the_room_runs_the_engine_without_the_presenters_tab(open_page: OpenPage) -> None:
    presenter, room = start(open_page)
    attendee = send(join(open_page, room.code), "abc")
    presenter.selectbox(key="room_pace").set_value("As fast as it can").run()
    presenter.button(key="room_run").click().run()
    until(lambda: not room.usage_of(tab_of(attendee).member).num_unfinished)
    attendee.run()
    assert 'data-request="A" data-status="finished"' in all_html(attendee)
    assert figure(attendee, "used") == "0"


def test_leaving_or_an_ended_room_shows_the_join_page(open_page: OpenPage) -> None:
    presenter, room = start(open_page)
    leaving, staying = join(open_page, room.code), join(open_page, room.code)
    button(leaving, "Leave the room").click().run()
    assert "room_tab" not in leaving.session_state
    assert len(room.members) == 2
    button(presenter, "End the room").click().run()
    until(lambda: rooms().find(room.code) is None)
    staying.run()
    assert labels(staying) == ["Join", "Start a room", "Take over"]
