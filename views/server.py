"""What lives as long as the server: the loaded models and the list of open engines, one of each for all tabs.

Heavy modules are imported by the thread that loads a model, so the first page appears before torch does.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine.progress import Progress, ProgressCallback
from views.app_metrics import AppMetrics
from views.checkups import Checkups
from views.left_sessions import LeftSessions
from views.model_shelf import ModelShelf
from views.open_sessions import OpenSessions
from views.room.rooms import Rooms

if TYPE_CHECKING:
    from engine.weights import LoadedModel

EMBEDDED, TINY = "smollm2-135m-instruct", "tiny-random"
MODEL_VARIABLE = "PAGED_KV_MODEL"
SECONDS_OF_A_TURN = 0.0005
"""How long a thread may compute before one that waits gets its turn. When a room turns a page, the engine's thread
waits for every tab's: twenty busy threads made 90 of 100 ticks up to 107 ms late at Python's own 5 ms, and 22 ms so."""

WARMING_UP = (
    "Running the model once to warm it up. "
    "The first time on a machine, the kernels are compiled for its processor: about half a minute"
)
"""Measured on two cores: 24 to 26 seconds to compile, 0.3 once that is kept on disk."""


@dataclass(frozen=True)
class ReadyModel:
    """Weights that every tab's engine shares. `info` describes what runs, as in a trace: model, backend and why."""

    weights: LoadedModel
    info: dict[str, Any]


def default_model() -> str:
    """The model a page opens with; the environment variable PAGED_KV_MODEL names another one."""
    return os.environ.get(MODEL_VARIABLE) or EMBEDDED


@st.cache_resource(show_spinner=False)
def model_shelf() -> ModelShelf[ReadyModel]:
    return ModelShelf(load_and_warm_up)


@st.cache_resource(show_spinner=False)
def open_sessions() -> OpenSessions:
    return OpenSessions()


@st.cache_resource(show_spinner=False)
def left_sessions() -> LeftSessions:
    return LeftSessions()


@st.cache_resource(show_spinner=False)
def app_metrics() -> AppMetrics:
    return AppMetrics()


@st.cache_resource(show_spinner=False)
def checkups() -> Checkups:
    return Checkups()


@st.cache_resource(show_spinner=False)
def rooms() -> Rooms:
    return Rooms()


def start() -> None:
    """Begin to load the default model before the first visitor comes."""
    sys.setswitchinterval(SECONDS_OF_A_TURN)
    model_shelf().ask(default_model())


def stop() -> None:
    """Let every engine finish its step and end."""
    rooms().close_all()
    open_sessions().close_all()


def load_and_warm_up(name: str, progress: ProgressCallback) -> ReadyModel:
    """Load the weights and run two steps, so that what is compiled on first use is compiled before a reader clicks.

    Raises ModelLoadError with one plain sentence.
    """
    from engine import Engine, EngineConfig, SamplingParams
    from engine.loading import load_parts, resolve_device
    from engine.weights import load_model

    weights = load_model(name, device=resolve_device("auto"), progress=progress)
    progress(Progress("load", 0, 0, WARMING_UP))
    config = EngineConfig(model=name, block_size=4, num_blocks=4)
    engine = Engine(config, load_parts(config, weights))
    engine.generate(["Hello"], SamplingParams(max_tokens=2))
    gc.collect()
    gc.freeze()  # what lives for ever need not be walked by every later collection
    return ReadyModel(weights, engine.trace.info)
