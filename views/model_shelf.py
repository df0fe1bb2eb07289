"""The models of this server: each loaded once, in a thread of its own, with its progress for every tab to read.

A tab that needs a model asks for it and polls; ten tabs that ask at once start one load. No Streamlit here: the
getter that makes one shelf a server is in `views/server.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.model_errors import ModelLoadError
from engine.progress import Progress, ProgressCallback

Model = TypeVar("Model")

WAITING = Progress("load", 0, 0, "Starting")
BROKEN = "The model could not be loaded because of a fault in this program. The server's log has the details."


@dataclass(frozen=True)
class Loading(Generic[Model]):
    """Where one model stands: `model` when it is ready, `problem` (one sentence) when it failed, else neither."""

    progress: Progress = WAITING
    model: Model | None = None
    problem: str = ""

    @property
    def is_over(self) -> bool:
        return self.model is not None or bool(self.problem)


class ModelShelf(Generic[Model]):
    """`load(name, progress)` brings one model; it may raise ModelLoadError with a sentence."""

    def __init__(self, load: Callable[[str, ProgressCallback], Model]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._shelf: dict[str, Loading[Model]] = {}
        self.num_loads = 0
        """Loads begun so far, over all models."""

    def ask(self, name: str) -> Loading[Model]:
        """Where the model stands now; the first to ask starts the load."""
        with self._lock:
            if name not in self._shelf:
                self._start(name)
            return self._shelf[name]

    def retry(self, name: str) -> None:
        """Load again after a failure. A load under way, or a model that is there, is left alone."""
        with self._lock:
            if name in self._shelf and self._shelf[name].problem:
                self._start(name)

    def _start(self, name: str) -> None:
        self._shelf[name] = Loading()
        self.num_loads += 1
        threading.Thread(target=self._bring, args=(name,), name=f"load {name}", daemon=True).start()

    def _bring(self, name: str) -> None:
        log, started = logging.getLogger(__name__), time.perf_counter()
        try:
            self._shelf[name] = Loading(model=self._load(name, lambda progress: self._note(name, progress)))
            log.info("%s is ready after %.1f s", name, time.perf_counter() - started)
        except ModelLoadError as error:
            log.warning("%s cannot be had: %s", name, error)
            self._shelf[name] = Loading(problem=str(error))
        except Exception:
            log.exception("loading %s failed", name)
            self._shelf[name] = Loading(problem=BROKEN)

    def _note(self, name: str, progress: Progress) -> None:
        self._shelf[name] = Loading(progress)
