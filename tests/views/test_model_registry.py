"""One load for all tabs, with its progress, a failure in one sentence, and a retry."""

from __future__ import annotations

import threading

from engine.model.load_report import ModelUnavailableError, Progress, ProgressCallback
from tests.helpers.waiting import until
from views.server.model_registry import BROKEN, LoadState, ModelRegistry

SECONDS = 60.0


def done(registry: ModelRegistry[str], name: str = "m") -> LoadState[str]:
    until(lambda: registry.request(name).is_done)
    return registry.request(name)


def test_twenty_concurrent_requests_start_one_load() -> None:
    loads: list[str] = []
    gate = threading.Event()

    def load(name: str, _progress: ProgressCallback) -> str:
        loads.append(name)
        gate.wait(SECONDS)
        return "weights"

    registry = ModelRegistry(load)
    tabs = [threading.Thread(target=registry.request, args=("m",)) for _ in range(20)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    gate.set()
    assert done(registry).model == "weights"
    assert loads == ["m"]


def test_progress_is_visible_during_the_load() -> None:
    gate = threading.Event()

    def load(_name: str, progress: ProgressCallback) -> str:
        progress(Progress(31, 93, "Fetching"))
        gate.wait(SECONDS)
        return "weights"

    registry = ModelRegistry(load)
    until(lambda: registry.request("m").progress.done == 31)
    assert not registry.request("m").is_done
    gate.set()
    assert done(registry).problem == ""


def test_a_failure_keeps_its_sentence_until_a_retry_works() -> None:
    answers: list[Exception | str] = [ModelUnavailableError("Connect once."), "weights"]

    def load(_name: str, _progress: ProgressCallback) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    registry = ModelRegistry(load)
    assert done(registry).problem == "Connect once."
    assert len(answers) == 1, "asking again must not load again"
    registry.retry("m")
    until(lambda: registry.request("m").model == "weights")
    registry.retry("m")
    assert registry.request("m").model == "weights", "a model that is there stays"


def test_an_unexpected_exception_becomes_a_sentence() -> None:
    def load(_name: str, _progress: ProgressCallback) -> str:
        raise KeyError("layer")

    assert done(ModelRegistry(load)).problem == BROKEN
