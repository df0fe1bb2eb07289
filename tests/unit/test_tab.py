"""A tab's engine when the tab goes, comes back, or comes again after a reload."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import streamlit as st

from engine import Engine, EngineConfig
from engine.loading import load_parts
from engine.weights import LoadedModel, load_model
from tests.helpers.waiting import until
from views import server, tab
from views.engine_session import EngineSession
from views.tab import Tab

SECONDS_AWAY = 1.0
"""Until a tab's engine is closed: no test takes so long to do what a tab does in time."""


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny-random")


@pytest.fixture(autouse=True)
def fresh_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tab, "SECONDS_TO_BE_MISSED", 0.2)
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def first(tiny: LoadedModel) -> Tab:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=8)
    first = Tab(seconds_to_come_back=SECONDS_AWAY)
    first.replace(lambda: EngineSession(Engine(config, load_parts(config, tiny))))
    return first


def session_of(tab: Tab) -> EngineSession:
    assert tab.open_session is not None
    return tab.open_session


def test_a_tab_that_goes_for_good_has_its_engine_closed(first: Tab) -> None:
    session = session_of(first)
    first.left()
    until(lambda: session.is_closed)
    assert first.open_session is None
    assert len(server.open_sessions()) == 0


def test_a_tab_that_comes_back_in_time_keeps_its_engine(first: Tab) -> None:
    session = session_of(first)
    first.left()
    first.arrived()
    time.sleep(SECONDS_AWAY + 0.3)
    assert session_of(first) is session


def test_after_a_reload_the_new_tab_takes_the_engine_up_and_closes_it_in_the_end(first: Tab) -> None:
    session = session_of(first)
    first.left()
    second = Tab()
    assert second.take_up(session.name) is session
    time.sleep(SECONDS_AWAY + 0.3)
    assert not session.is_closed, "the tab that was has nothing to close any more"
    assert first.open_session is None
    second.close()
    assert session.is_closed


def test_the_engine_of_a_tab_that_is_here_is_not_to_be_had(first: Tab) -> None:
    session = session_of(first)
    assert Tab().take_up(session.name) is None
    assert Tab().take_up("some other name") is None
    assert session_of(first) is session


def test_only_one_tab_takes_an_engine_up_and_the_first_one_sees_that_it_is_gone(first: Tab) -> None:
    name = session_of(first).name
    first.left()
    assert Tab().take_up(name) is not None
    assert Tab().take_up(name) is None
    first.arrived()
    assert first.open_session is None


def test_names_cannot_be_guessed(first: Tab, tiny: LoadedModel) -> None:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=8)
    names = {EngineSession(Engine(config, load_parts(config, tiny))).name for _ in range(3)}
    assert len(names) == 3 and min(map(len, names)) >= 20
