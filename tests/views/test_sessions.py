"""Sessions when their tab disconnects, reconnects in time or too late, or is reloaded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import streamlit as st

from engine import Engine, EngineConfig
from engine.components import build_components
from engine.model.weights.load import LoadedModel, load_model
from tests.helpers.waiting import PATIENCE, until
from views.server import sessions
from views.server.engine_session import EngineSession
from views.server.sessions import Tab, session_registry

REATTACH_SECONDS = 1.0
"""Until a detached session is closed: no test takes so long to do what a tab does in time."""


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny-random")


@pytest.fixture(autouse=True)
def fresh_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sessions, "DISCONNECT_GRACE_SECONDS", 0.2)
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def first(tiny: LoadedModel) -> Tab:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=8)
    first = Tab(reattach_seconds=REATTACH_SECONDS)
    first.replace(lambda: EngineSession(Engine(config, build_components(config, tiny))))
    return first


def session_of(tab: Tab) -> EngineSession:
    assert tab.open_session is not None
    return tab.open_session


def test_a_session_expires_when_its_tab_does_not_reconnect(first: Tab) -> None:
    session = session_of(first)
    first.on_disconnect()
    until(lambda: session.is_closed)
    assert first.open_session is None
    assert len(session_registry()) == 0


def test_a_tab_that_reconnects_in_time_keeps_its_session(first: Tab) -> None:
    session = session_of(first)
    first.on_disconnect()
    first.on_connect()
    time.sleep(REATTACH_SECONDS + 0.3)
    assert session_of(first) is session


def test_a_tab_that_reconnects_while_its_session_expires_keeps_it(first: Tab) -> None:
    session, now_due, has_run = session_of(first), threading.Event(), threading.Event()

    class LateTimer(threading.Timer):
        """Begins just before it is cancelled."""

        def run(self) -> None:
            now_due.wait(PATIENCE)
            self.function()
            has_run.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Timer", LateTimer)
        first.on_disconnect()
    first.on_connect()
    now_due.set()
    assert has_run.wait(PATIENCE)
    assert session_of(first) is session


def test_after_a_reload_the_new_tab_owns_the_session(first: Tab) -> None:
    session = session_of(first)
    first.on_disconnect()
    second = Tab()
    assert second.reattach(session.name) is session
    time.sleep(REATTACH_SECONDS + 0.3)
    assert not session.is_closed, "the tab that was has nothing to close any more"
    assert first.open_session is None
    second.close()
    assert session.is_closed


def test_the_session_of_a_connected_tab_cannot_be_claimed(first: Tab) -> None:
    session = session_of(first)
    assert Tab().reattach(session.name) is None
    assert Tab().reattach("some other name") is None
    assert session_of(first) is session


def test_a_detached_session_is_claimed_once_and_its_old_tab_has_none(first: Tab) -> None:
    name = session_of(first).name
    first.on_disconnect()
    assert Tab().reattach(name) is not None
    assert Tab().reattach(name) is None
    first.on_connect()
    assert first.open_session is None


def test_session_ids_are_long_and_unique(first: Tab, tiny: LoadedModel) -> None:
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=8)
    names = {EngineSession(Engine(config, build_components(config, tiny))).name for _ in range(3)}
    assert len(names) == 3 and min(map(len, names)) >= 20
