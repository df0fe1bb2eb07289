"""One load a server, whoever asks; its progress, its failure in a sentence, and another try."""

from __future__ import annotations

import threading

from engine.model_errors import ModelUnavailableError
from engine.progress import Progress, ProgressCallback
from tests.helpers.waiting import until
from views.model_shelf import BROKEN, Loading, ModelShelf

SECONDS = 60.0


def over(shelf: ModelShelf[str], name: str = "m") -> Loading[str]:
    until(lambda: shelf.ask(name).is_over)
    return shelf.ask(name)


def test_twenty_tabs_that_ask_at_once_start_one_load() -> None:
    loads: list[str] = []
    gate = threading.Event()

    def load(name: str, _progress: ProgressCallback) -> str:
        loads.append(name)
        gate.wait(SECONDS)
        return "weights"

    shelf = ModelShelf(load)
    askers = [threading.Thread(target=shelf.ask, args=("m",)) for _ in range(20)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    gate.set()
    assert over(shelf).model == "weights"
    assert loads == ["m"]


def test_progress_is_seen_while_it_loads() -> None:
    gate = threading.Event()

    def load(_name: str, progress: ProgressCallback) -> str:
        progress(Progress("download", 31, 93, "Fetching"))
        gate.wait(SECONDS)
        return "weights"

    shelf = ModelShelf(load)
    until(lambda: shelf.ask("m").progress.done == 31)
    assert not shelf.ask("m").is_over
    gate.set()
    assert over(shelf).problem == ""


def test_a_failure_keeps_its_sentence_until_a_retry_works() -> None:
    answers: list[Exception | str] = [ModelUnavailableError("Connect once."), "weights"]

    def load(_name: str, _progress: ProgressCallback) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shelf = ModelShelf(load)
    assert over(shelf).problem == "Connect once."
    assert len(answers) == 1, "asking again must not load again"
    shelf.retry("m")
    until(lambda: shelf.ask("m").model == "weights")
    shelf.retry("m")
    assert shelf.ask("m").model == "weights", "a model that is there stays"


def test_a_fault_of_the_program_is_a_sentence_too() -> None:
    def load(_name: str, _progress: ProgressCallback) -> str:
        raise KeyError("layer")

    assert over(ModelShelf(load)).problem == BROKEN
