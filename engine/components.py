"""What an engine is put together from: a real model brings all of it, a script brings it without weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from engine.config import ConfigError, EngineConfig
from engine.i18n import _
from engine.kv_cache.manager import BlockStore
from engine.model.interpreter_exit import computing
from engine.model.load_report import ModelLoadError, ProgressCallback, ignore_progress
from engine.model.tokenizer import Tokenizer
from engine.sampler import LogitsSampler, Sampler
from engine.scheduler import ScheduledSequence
from kernels.registry import is_split_by_batch

if TYPE_CHECKING:
    from engine.model.kv_store import KVStore
    from engine.model.llama import LlamaModel
    from engine.model.weights.load import LoadedModel
    from engine.runner import FastPath
    from kernels.backend import Backend


class Runner(Protocol):
    """Runs the scheduled tokens, writing keys and values; returns a row of logits for each item that needs one.

    The rows are valid until the next run.
    """

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """Logits [num_logit_rows, vocab_size] float32, a row for each item with `needs_logits`, in order."""
        ...


@dataclass(frozen=True, slots=True)
class EngineComponents:
    """`info` describes the source for the trace: model, backend and why, dtype, KV bytes a token.

    max_positions: how long a sequence the model knows, or None for a script.
    """

    tokenizer: Tokenizer
    runner: Runner
    sampler: Sampler
    store: BlockStore | None
    vocab_size: int
    info: dict[str, Any]
    max_positions: int | None = None


@computing
def build_components(
    config: EngineConfig, loaded: LoadedModel | None = None, progress: ProgressCallback = ignore_progress
) -> EngineComponents:
    """The components of one engine; `loaded` weights are shared, the KV store is its own, on the device of the weights.

    Raises ModelLoadError, also for a GPU that was lost in the self-test of its kernels, ConfigError (max_model_len,
    batch_invariant), ValueError (device, backend) or MemoryError (pool), each with one plain sentence.
    """
    from engine.model.batch_invariance import batch_invariant_backend, batch_invariant_model
    from engine.model.cuda_graphs import lock_of
    from engine.model.device import device_note, resolve_device, resolve_kv_dtype
    from engine.model.kv_store import KVStore
    from engine.model.weights.load import load_model
    from engine.runner import ModelRunner
    from kernels.backend import check_backend, select_backend
    from kernels.device_lost import DeviceLostError
    from kernels.self_test import AttentionSizes

    device = loaded.model.device if loaded else resolve_device(config.device)
    if config.device not in ("auto", device.type):
        raise ValueError(
            _("device is '{device}', but the given model is on {type}.").format(device=config.device, type=device.type)
        )
    if config.batch_invariant:
        check_batch_invariant_device(device)
    check_backend(config.attention_backend, device)
    loaded = loaded or load_model(config.model, dtype=config.dtype, device=device, progress=progress)
    model, shape = loaded.model, loaded.config
    config = config.for_positions(shape.max_positions, loaded.name)
    kv_dtype = resolve_kv_dtype(config.kv_dtype, loaded.dtype)
    sizes = AttentionSizes(
        shape.num_heads, shape.num_kv_heads, shape.head_dim, config.block_size, model.dtype, kv_dtype
    )
    try:
        with lock_of(device):  # its kernels are tried now, and another engine may be recording a graph
            backend = select_backend(config.attention_backend, device, sizes)
    except DeviceLostError as error:
        raise ModelLoadError(str(error)) from error
    if config.batch_invariant:
        backend, model = batch_invariant_backend(backend), batch_invariant_model(model)
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
    fast_path = _fast_path(config, model, store)
    return EngineComponents(
        tokenizer=loaded.tokenizer,
        runner=ModelRunner(model, store, fast_path),
        sampler=sampler_of(fast_path, backend),
        store=store,
        vocab_size=shape.vocab_size,
        info={
            "model": loaded.name,
            "dtype": loaded.dtype,
            "device": device.type,
            "device_note": device_note(device, loaded.dtype) if config.device == "auto" else "",
            "backend": backend.name,
            "backend_reason": backend.reason,
            "num_layers": shape.num_layers,
            "num_heads": shape.num_heads,
            "num_kv_heads": shape.num_kv_heads,
            "head_dim": shape.head_dim,
            "kv_dtype": str(kv_dtype).removeprefix("torch."),
            "kv_bytes_per_token": 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * store.key_cache.itemsize,
        },
        max_positions=shape.max_positions,
    )


def sampler_of(fast_path: FastPath | None, backend: Backend) -> LogitsSampler:
    """A sampler that takes the greedy choice from the graph of the step, where it is part of it."""
    from engine.model.cuda_graphs import DecodeGraphs

    choosing = fast_path if isinstance(fast_path, DecodeGraphs) else backend
    return LogitsSampler(choosing.argmax_logsumexp)


def _fast_path(config: EngineConfig, model: LlamaModel, store: KVStore) -> FastPath | None:
    """A faster way than calling the model's operations one by one, where there is one."""
    from engine.model.compiled_steps import CompiledSteps, can_compile
    from engine.model.cuda_graphs import DecodeGraphs

    if model.device.type == "cuda" and store.backend.spec.cuda_graphs and not config.enforce_eager:
        return DecodeGraphs(model, store, config.max_num_seqs, config.max_model_len)
    if not can_compile(model, store):
        return None
    return CompiledSteps(model, store, batch_invariant=config.batch_invariant)


def check_batch_invariant_device(device: torch.device) -> None:
    """Raises ConfigError unless it is the CPU."""
    if device.type != "cpu":
        raise ConfigError(
            _(
                "batch_invariant runs on the CPU only, and device is '{type}': kernels there split "
                "sums by the size of the batch. Set device to 'cpu', or leave batch_invariant off."
            ).format(type=device.type)
        )


def can_be_batch_invariant(config: EngineConfig) -> bool:
    """Whether `batch_invariant` can be honoured on this machine: on the CPU, by a backend that does not split by batch.

    Raises ValueError for a device that is not there.
    """
    from engine.model.device import resolve_device

    return resolve_device(config.device).type == "cpu" and not is_split_by_batch(config.attention_backend)
