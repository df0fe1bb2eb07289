"""The log: one line a thing that happened, for a person to read."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from io import StringIO

import pytest

from engine import EngineConfig
from engine.model_errors import ModelUnavailableError
from tests.helpers.hash_model import hash_engine
from views.engine_session import EngineSession
from views.log import LOGGERS, write_readable_log
from views.model_shelf import ModelShelf
from views.open_sessions import OpenSessions


@pytest.fixture
def written() -> Iterator[StringIO]:
    stream = StringIO()
    write_readable_log(stream)
    yield stream
    for name in LOGGERS:
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True


def wait_for(shelf: ModelShelf[str], name: str) -> None:
    while not shelf.ask(name).is_over:
        pass


def test_a_model_that_is_ready_and_one_that_cannot_be_had_are_one_line_each(written: StringIO) -> None:
    def load(name: str, _progress: object) -> str:
        if name == "absent":
            raise ModelUnavailableError("It is not here. Fetch it.")
        return name

    shelf = ModelShelf(load)
    for name in ("tiny", "absent"):
        wait_for(shelf, name)
    ready, absent = written.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  info    views\.model_shelf: tiny is ready after \d\.\d s", ready)
    assert absent.endswith("warning views.model_shelf: absent cannot be had: It is not here. Fetch it.")


def test_an_engine_that_opens_says_its_size(written: StringIO) -> None:
    sessions = OpenSessions()
    held = EngineSession(hash_engine(EngineConfig(block_size=4, num_blocks=10)))
    sessions.add(held)
    [line] = written.getvalue().splitlines()
    assert "an engine opens: 10 blocks of 4, model smollm2-135m-instruct; open now: 1" in line
