"""A paged-attention engine that writes down everything it does to memory.

    from engine import Engine, EngineConfig, SamplingParams

Names are loaded on first use, so that `import engine.kv_cache.block_pool` stays free of torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config import EngineConfig as EngineConfig
    from engine.engine import Engine as Engine
    from engine.sampling_params import SamplingParams as SamplingParams
    from engine.trace.trace import Trace as Trace

_HOMES = {
    "Engine": "engine.engine",
    "EngineConfig": "engine.config",
    "SamplingParams": "engine.sampling_params",
    "Trace": "engine.trace.trace",
}
__all__ = ["Engine", "EngineConfig", "SamplingParams", "Trace"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
