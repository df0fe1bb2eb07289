"""The models of this server: each is loaded once, in a thread of its own, and shared by all tabs.

A tab that needs a model asks for it and polls; ten tabs that ask at once start one load. Heavy modules are imported by
the thread that loads, so the first page appears before torch is imported.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import streamlit as st

from engine.i18n import N_, _
from engine.model.load_report import ModelLoadError, Progress, ProgressCallback

if TYPE_CHECKING:
    from engine.model.weights.load import LoadedModel

Model = TypeVar("Model")

EMBEDDED, TINY = "smollm2-135m-instruct", "tiny-random"
MODEL_VARIABLE = "PAGED_KV_MODEL"
WAITING = Progress(0, 0, N_("Starting"))
WARMING_UP = N_(
    "Running the model once to warm it up. The first time on a machine, kernels are compiled for its "
    "processor, which takes about half a minute"
)
"""Measured on two cores: 24 to 26 seconds to compile, 0.3 once that is kept on disk."""
BROKEN = N_("The model could not be loaded because of an error in this app. The server's log has the details.")


@dataclass(frozen=True)
class LoadState(Generic[Model]):
    """How far one model has come: `model` when it is ready, `problem` (one sentence) when it failed, else neither."""

    progress: Progress = WAITING
    model: Model | None = None
    problem: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the load has ended, well or not."""
        return self.model is not None or bool(self.problem)


class ModelRegistry(Generic[Model]):
    """Loads models by name with `load(name, progress)`, which may raise ModelLoadError with one sentence."""

    def __init__(self, load: Callable[[str, ProgressCallback], Model]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._states: dict[str, LoadState[Model]] = {}
        self.num_loads = 0
        """Loads started so far, over all models."""

    def request(self, name: str) -> LoadState[Model]:
        """How far the model has come; the first call for a name starts the load. Never waits."""
        with self._lock:
            if name not in self._states:
                self._start(name)
            return self._states[name]

    def retry(self, name: str) -> None:
        """Load again after a failure. A load under way, or a model that is ready, is left alone."""
        with self._lock:
            if name in self._states and self._states[name].problem:
                self._start(name)

    def _start(self, name: str) -> None:
        self._states[name] = LoadState()
        self.num_loads += 1
        threading.Thread(target=self._run_load, args=(name,), name=f"load {name}", daemon=True).start()

    def _run_load(self, name: str) -> None:
        log, started = logging.getLogger(__name__), time.perf_counter()
        try:
            self._states[name] = LoadState(model=self._load(name, lambda progress: self._set_progress(name, progress)))
            log.info("model %s is ready after %.1f s", name, time.perf_counter() - started)
        except ModelLoadError as error:
            log.warning("model %s is not available: %s", name, error)
            self._states[name] = LoadState(problem=str(error))
        except Exception:
            log.exception("loading model %s failed", name)
            self._states[name] = LoadState(problem=_(BROKEN))

    def _set_progress(self, name: str, progress: Progress) -> None:
        self._states[name] = LoadState(progress)


@dataclass(frozen=True)
class ReadyModel:
    """Weights that every tab's engine shares. `info`: model, attention backend and why, as in a trace."""

    weights: LoadedModel
    info: dict[str, Any]


def default_model() -> str:
    """The model that a page opens with; the environment variable PAGED_KV_MODEL names another one."""
    return os.environ.get(MODEL_VARIABLE) or EMBEDDED


def model_names() -> list[str]:
    """The models to choose from, the default first."""
    return list(dict.fromkeys([default_model(), EMBEDDED, TINY]))


@st.cache_resource(show_spinner=False)
def model_registry() -> ModelRegistry[ReadyModel]:
    """One for the whole server."""
    return ModelRegistry(load_and_warm_up)


def load_and_warm_up(name: str, progress: ProgressCallback) -> ReadyModel:
    """Load the weights and run two steps, so that what is compiled on first use is compiled before a reader clicks.

    Raises ModelLoadError with one plain sentence.
    """
    from engine import Engine, EngineConfig, SamplingParams
    from engine.components import build_components
    from engine.model.device import resolve_device
    from engine.model.weights.load import load_model

    weights = load_model(name, device=resolve_device("auto"), progress=progress)
    progress(Progress(0, 0, _(WARMING_UP)))
    config = EngineConfig(model=name, block_size=4, num_blocks=4)
    engine = Engine(config, build_components(config, weights))
    engine.generate(["Hello"], SamplingParams(max_tokens=2))
    gc.collect()
    gc.freeze()  # weights live as long as the process: no later collection need walk them
    return ReadyModel(weights, engine.trace.info)
