"""The same weights in float32, where rounding is small: loaded when an experiment wants them, let go after it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from engine.weights import LoadedModel

_lock = threading.Lock()
_in_use: WeakValueDictionary[str, LoadedModel] = WeakValueDictionary()
"""Experiments at the same time share one copy."""


def float32_weights(weights: LoadedModel) -> LoadedModel:
    """Raises ModelLoadError with one plain sentence."""
    from engine.loading import resolve_device  # torch comes with it
    from engine.weights import load_model

    if weights.dtype == "float32":
        return weights
    with _lock:
        loaded = _in_use.get(weights.name)
        if loaded is None:
            loaded = load_model(weights.name, dtype="float32", device=resolve_device("auto"))
            _in_use[weights.name] = loaded
        return loaded
