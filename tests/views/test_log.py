"""The log: one line for each model, session and weight load."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from io import StringIO

import pytest

from engine import EngineConfig
from engine.model.load_report import ModelUnavailableError
from engine.model.weights.load import load_model
from tests.helpers.hash_model import hash_engine
from views.server.engine_session import EngineSession
from views.server.log import LOGGERS, configure_logging
from views.server.model_registry import ModelRegistry
from views.server.sessions import SessionRegistry


@pytest.fixture
def written() -> Iterator[StringIO]:
    stream = StringIO()
    configure_logging(stream)
    yield stream
    for name in LOGGERS:
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True


def wait_for(registry: ModelRegistry[str], name: str) -> None:
    while not registry.request(name).is_done:
        pass


def test_a_ready_and_an_unavailable_model_are_one_line_each(written: StringIO) -> None:
    def load(name: str, _progress: object) -> str:
        if name == "absent":
            raise ModelUnavailableError("It is not here. Fetch it.")
        return name

    registry = ModelRegistry(load)
    for name in ("tiny", "absent"):
        wait_for(registry, name)
    ready, absent = written.getvalue().splitlines()
    name = "views.server.model_registry"
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  info    {name}: model tiny is ready after \d\.\d s", ready)
    assert absent.endswith(f"warning {name}: model absent is not available: It is not here. Fetch it.")


def test_a_session_that_opens_logs_its_size(written: StringIO) -> None:
    sessions = SessionRegistry()
    held = EngineSession(hash_engine(EngineConfig(block_size=4, num_blocks=10)))
    sessions.add(held)
    [line] = written.getvalue().splitlines()
    assert "engine session opened: 10 blocks of 4, model smollm2-135m-instruct; open sessions: 1" in line


def test_loaded_weights_are_one_line(written: StringIO) -> None:
    load_model("tiny-random", dtype="float32")
    [line] = written.getvalue().splitlines()
    assert line.endswith("info    engine.model.weights.load: weights of tiny-random loaded: float32 on cpu")


def test_concurrent_requests_load_the_weights_once(written: StringIO) -> None:
    registry = ModelRegistry(lambda name, _progress: load_model(name, dtype="float32").name)
    tabs = [threading.Thread(target=wait_for, args=(registry, "tiny-random")) for _ in range(4)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    lines = written.getvalue().splitlines()
    assert sum("weights of tiny-random loaded" in line for line in lines) == 1
