"""Put an engine together around a real model. The model can be loaded once and shared by many engines."""

from __future__ import annotations

import torch

from engine.compiled_steps import CompiledSteps, can_compile
from engine.config import EngineConfig
from engine.cuda_graphs import DecodeGraphs
from engine.dtypes import resolve_kv_dtype
from engine.kv_store import KVStore
from engine.model_runner import ModelRunner, Shortcut
from engine.parts import EngineParts
from engine.progress import ProgressCallback, ignore_progress
from engine.sampler import Sampler
from engine.weights import LoadedModel, load_model
from kernels.backend import select_backend


def load_parts(
    config: EngineConfig, loaded: LoadedModel | None = None, progress: ProgressCallback = ignore_progress
) -> EngineParts:
    """The parts of one engine; `loaded` weights are shared, the KV store is its own.

    Raises ModelLoadError, ValueError (backend) or MemoryError (pool), each with one plain sentence.
    """
    device = resolve_device(config.device)
    backend = select_backend(config.attention_backend, device)
    loaded = loaded or load_model(config.model, dtype=config.dtype, device=device, progress=progress)
    shape = loaded.config
    kv_dtype = resolve_kv_dtype(config.kv_dtype, loaded.dtype)
    store = KVStore(
        num_layers=shape.num_layers,
        num_blocks=config.num_blocks,
        block_size=config.block_size,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        dtype=kv_dtype,
        device=device,
        num_cpu_blocks=config.num_cpu_blocks,
        backend=backend,
    )
    return EngineParts(
        tokenizer=loaded.tokenizer,
        runner=ModelRunner(loaded.model, store, _shortcut(config, loaded, store)),
        chooser=Sampler(backend.best_token),
        store=store,
        vocab_size=shape.vocab_size,
        info={
            "model": loaded.name,
            "dtype": loaded.dtype,
            "device": device.type,
            "backend": backend.name,
            "backend_reason": backend.reason,
            "num_layers": shape.num_layers,
            "num_heads": shape.num_heads,
            "num_kv_heads": shape.num_kv_heads,
            "head_dim": shape.head_dim,
            "kv_dtype": str(kv_dtype).removeprefix("torch."),
            "kv_bytes_per_token": 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * store.key_cache.itemsize,
        },
    )


def _shortcut(config: EngineConfig, loaded: LoadedModel, store: KVStore) -> Shortcut | None:
    """A faster way than calling the model's operations one by one, where there is one."""
    if loaded.model.device.type == "cuda" and store.backend.name == "triton":
        return DecodeGraphs(loaded.model, store, config.max_num_seqs, config.max_model_len)
    return CompiledSteps(loaded.model, store) if can_compile(loaded.model, store) else None


def resolve_device(name: str) -> torch.device:
    """`auto` is the GPU where torch sees one. Raises ValueError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' was asked for, but torch sees no GPU here; use 'auto' or 'cpu'.")
    return device
